// The rules for which plan may follow which.
//
// A plan change may add tensors and schedules, move partitions to other owners, fill or empty places of CPU summers,
// and change the strategy of tensors that don't accumulate: another Tensor::schedule, with a higher schedule_from. A
// job's workers, its tensors otherwise, their cuts into partitions, and the class of its bits never change. So the
// state that a member keeps about a partition (step, contributions, results) stays valid when the partition moves or
// its strategy changes.
#pragma once

#include "absl/status/status.h"
#include "common/plan/plan.h"

namespace gleaner::plan {

// Returns OK if `later` may follow `earlier`. FailedPrecondition names the difference that is not allowed. Both plans
// must be valid.
absl::Status check_successor(const Plan& later, const Plan& earlier);

// Returns whether this partition came to its owner after `epoch`. If so, members that followed the plan of `epoch`
// begin anew with the owner.
inline bool has_moved(const Partition& partition, uint32_t epoch) { return partition.since > epoch; }

}  // namespace gleaner::plan
