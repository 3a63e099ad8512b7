// Makes and prints the plan of `gleaner plan`, whatever the machines come from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/plan_advice.h"
#include "cli/plan_flags.h"
#include "common/plan/explain.h"
#include "common/plan/plan.h"

namespace gleaner::cli {

double total_bytes(const std::vector<plan::Tensor>& tensors);

// Returns the plan of these machines and tensors. `shares`: the share of each member, workers first; empty: those of
// the bandwidth model. Errors: InvalidArgument.
absl::StatusOr<plan::Plan> plan_of(const PlanFlags& flags, const plan::Fleet& fleet, std::vector<plan::Tensor> tensors,
                                   uint32_t local_ranks, std::vector<double> shares = {});

// PlanContext holds what is known of a plan's machines besides their bandwidths.
struct PlanContext {
  std::string head;                    // comes before the plan, but not in JSON
  std::vector<std::string> nodes;      // the node of each machine, workers first; empty: unknown
  std::optional<PricedAdvice> advice;  // in a network
};

// Prints the plan as --output says.
absl::Status print_plan(const PlanFlags& flags, const plan::Plan& plan, plan::Explanation explanation,
                        const PlanContext& context);

}  // namespace gleaner::cli
