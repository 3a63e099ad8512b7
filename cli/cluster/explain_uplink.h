// Finds the uplink of a group of the cluster that limits the steps of a running job, for `gleaner explain`. Pure.
//
// The figures come from the job's ReductionPlan and from the cluster's Topology. A step takes as long as the busiest
// link of the network of the plan's members (plan::busiest_link(); BytePS §4.1).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/cluster/explain_view.h"
#include "common/fabric/fabric.h"

namespace gleaner::cli {

struct BindingUplink {
  std::string group;           // in the Topology
  double bits_per_second = 0;  // each way
  double bytes = 0;            // that it carries in a step in its busier direction
  double seconds = 0;          // of a step with it
  double without_seconds = 0;  // of a step by the links of the machines alone
};

// Returns the uplink that takes longer than every link of a machine. Nullopt: no uplink of known bandwidth does, the
// speed of a link is unknown, or schedules sum tensors. InvalidArgument: no network can be made of the plan.
absl::StatusOr<std::optional<BindingUplink>> binding_uplink(const ExplainedJob& job, const fabric::Fabric& fabric);

// Returns the line about the uplink; empty: no uplink binds. An error is the reason for which it is unknown.
std::string to_text(const absl::StatusOr<std::optional<BindingUplink>>& uplink);
// Returns null where no uplink binds, and {"error"} if it is unknown.
nlohmann::json to_json(const absl::StatusOr<std::optional<BindingUplink>>& uplink);

}  // namespace gleaner::cli
