// Makes the output of `gleaner explain`: the load of each machine of a running job, the limit of a step, and the gain
// of one more summer. Pure.
//
// The figures come from the job's ReductionPlan, which the operator updates, and from the bandwidth model
// (docs/model.md).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/api/reduction_plan.h"
#include "common/api/training_job.h"

namespace gleaner::cli {

// The constraint that limits the bound of a step.
enum class JobLimit {
  kNothingMoves,
  kSlowestWorker,  // the gradient of the slowest worker fills its link
  kAllLinks,       // every link is busy for the whole step
  kUplink,         // the uplink of a group of the cluster takes longer than the link of each machine
  kSchedules,      // schedules sum tensors, and the bound is that of the strategies in force
  kUnknown,        // the speed of some link is unknown
};

// Returns the measured figures of the last minute: "61.3 ms a step in the last minute, 120 steps in all: efficiency
// 97.2 %; goodput 1.70 GiB/s per worker". If there is no efficiency, the text has the reason.
std::string measured_text(const api::ReductionPlanStatus& status);
// Returns a text that names the members whose network speed is unknown and says what to do. Empty: all are known.
std::string unknown_links(const api::ReductionPlan& plan);

// Returns the bytes of a step, and how many they would be without compression.
std::string step_bytes_text(const api::ReductionPlanSpec& spec);

// Returns the bytes that workers push for each byte of the result.
double push_ratio_of(const api::ReductionPlanSpec& spec);

// Returns whether the member owns partitions, or may: a slow summer without partitions does not.
bool takes_part(const api::PlanMember& member);

struct ExplainedMachine {
  api::PlanMember member;  // its bytes are scaled to those of one step
  double share = 0;        // owned bytes / bytes of a step
  double seconds = 0;      // traffic / bandwidth
};

// The uplink of a group of the cluster that takes longer than the link of each machine.
struct BindingUplink {
  std::string group;           // in the Topology
  double bits_per_second = 0;  // each way
  double bytes = 0;            // that it carries in a step in its busier direction
  double seconds = 0;          // of a step with it
  double without_seconds = 0;  // of a step by the links of the machines alone
};
// Nullopt: no uplink binds, as far as it is known. An error is the reason for which it is unknown.
using FoundUplink = absl::StatusOr<std::optional<BindingUplink>>;

struct ExplainedJob {
  api::ReductionPlan plan;
  uint32_t local_ranks = 1;  // of each worker
  std::vector<ExplainedMachine> machines;
  size_t binding = 0;  // index of the machine that takes longest
  double seconds = 0;  // planned time of a step; 0 if the limit is unknown, and the bound if it is kSchedules
  JobLimit limit = JobLimit::kNothingMoves;
  FoundUplink uplink = std::optional<BindingUplink>();  // set by count_uplinks() (explain_uplink.h)
  // The bandwidth of one more summer (that of the median summer, or of the median worker if there are no summers), and
  // the bound with it; the bound is 0 if the limit is unknown, or if both owners and schedules sum tensors.
  double one_more_bits_per_second = 0, one_more_bound_seconds = 0;
  std::string one_more_group;  // of the cluster, the best place of that summer; empty: uplinks do not matter
};

// Errors: FailedPrecondition if the plan has no tensors yet, InvalidArgument if no operator can have written it.
absl::StatusOr<ExplainedJob> explain_job(api::ReductionPlan plan, uint32_t local_ranks = 1);

std::string to_text(const ExplainedJob& job);
nlohmann::json to_json(const ExplainedJob& job);

// Returns a line with the job's compression and fusion of gradients, and the bytes that compression saves. Empty: the
// job sets neither, and no gradient is compressed.
std::string gradients_text(const api::Communication& communication, const api::ReductionPlanSpec& spec);
nlohmann::json gradients_json(const api::Communication& communication);

// Returns how many summers the autoscaler wants for this job, and why; empty before its first decision.
std::string autoscaler_text(const api::SummersStatus& summers, absl::Time now);
nlohmann::json to_json(const api::SummersStatus& summers);

}  // namespace gleaner::cli
