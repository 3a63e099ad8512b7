// Numbers the groups of a plan's tensors (plan::Tensor::group), and tells how much memory their sums need. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/plan.h"

namespace gleaner::engine {

inline constexpr uint32_t kAllWorkers = 0;  // the number of the group of all workers

// Returns the number of each tensor's group, by tensor. The groups of some workers follow in the order
// of their first tensors. So a later plan of a job gives the same numbers to the same groups.
std::vector<uint32_t> groups_of(const plan::Plan& plan);

// Returns, by group, the memory in bytes of the largest sum of a partition that member `self` owns: the contributions
// and the result. 0: it owns no partition of the group that does not accumulate.
std::vector<uint64_t> largest_sums(const plan::Plan& plan, const std::vector<uint32_t>& groups, uint32_t self);

}  // namespace gleaner::engine
