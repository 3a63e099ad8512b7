// Which plan may follow which.
//
// A plan change may add tensors, move partitions from one owner to another, and fill or empty places of CPU summers.
// Tensors, how they are cut, and workers stay for as long as the job does. So what a member knows of a partition (its
// step, contributions, results) stays true, whoever owns it.
#pragma once

#include "absl/status/status.h"
#include "common/plan/plan.h"

namespace gleaner::plan {

// FailedPrecondition says what in `later` does not go with `earlier`. Both must be valid.
absl::Status check_successor(const Plan& later, const Plan& earlier);

// Whether this partition of a plan came to its owner after `epoch`: members that followed the plan of `epoch` have to
// begin anew with that owner.
inline bool has_moved(const Partition& partition, uint32_t epoch) { return partition.since > epoch; }

}  // namespace gleaner::plan
