// What each machine of a running job does, what a step waits for, and what one more summer would buy. Pure.
//
// The figures are those of the job's ReductionPlan, which the operator keeps, and of the bandwidth model
// (docs/model.md).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "operator/types/reduction_plan.h"
#include "operator/types/training_job.h"

namespace gleaner::cli {

enum class JobLimit {
  kNothingMoves,
  kSlowestWorker,
  kAllLinks,
  kUnknown,  // nobody knows how fast some link is
};

// What was measured of the last minute: "61.3 ms a step, efficiency 97.2 %, goodput 1.7 GB/s per worker", or why there
// is no efficiency.
std::string measured_text(const types::ReductionPlanStatus& status);
// "the network speed of worker-0, worker-1 is not known: label ...". Empty: all speeds are known.
std::string unknown_links(const types::ReductionPlan& plan);

struct ExplainedMachine {
  types::PlanMember member;  // its bytes are those of a step
  double share = 0;          // owned, of a step's bytes
  double seconds = 0;        // traffic over bandwidth
};

struct ExplainedJob {
  types::ReductionPlan plan;
  std::vector<ExplainedMachine> machines;
  size_t binding = 0;  // the machine that takes longest
  double seconds = 0;  // of a step, as planned; 0, as one_more_bound_seconds, where the limit is not known
  JobLimit limit = JobLimit::kNothingMoves;
  // One more summer, as fast as the median summer, or worker where there is none.
  double one_more_bits_per_second = 0, one_more_bound_seconds = 0;
};

// FailedPrecondition: the plan has no tensors yet. InvalidArgument: it isn't one that an operator wrote.
absl::StatusOr<ExplainedJob> explain_job(types::ReductionPlan plan);

std::string to_text(const ExplainedJob& job);
nlohmann::json to_json(const ExplainedJob& job);

// What the autoscaler wants of this job, and why; empty before it has looked.
std::string autoscaler_text(const types::SummersStatus& summers, absl::Time now);
nlohmann::json to_json(const types::SummersStatus& summers);

}  // namespace gleaner::cli
