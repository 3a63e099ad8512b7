// Whether a plan only adds tensors to another: then what is in flight under the earlier one stays valid under the
// later.
#pragma once

#include <algorithm>

#include "common/plan/plan.h"

namespace gleaner::plan {

inline bool extends(const Plan& later, const Plan& earlier) {
  return later.fence == earlier.fence && later.workers == earlier.workers && later.local_ranks == earlier.local_ranks &&
         later.members == earlier.members && later.tensors.size() >= earlier.tensors.size() &&
         later.partitions.size() >= earlier.partitions.size() &&
         std::equal(earlier.tensors.begin(), earlier.tensors.end(), later.tensors.begin()) &&
         std::equal(earlier.partitions.begin(), earlier.partitions.end(), later.partitions.begin());
}

}  // namespace gleaner::plan
