// Groups of ranks for hierarchical algorithms.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/collective/schedule.h"

namespace gleaner::collective {

// Returns the sizes of `count` groups of `ranks` ranks, which differ by at most one. Requires 1 <= count <= ranks.
std::vector<uint32_t> even_sizes(uint32_t ranks, uint32_t count);

// Returns groups of consecutive ranks with these sizes.
Groups even_groups(uint32_t ranks, uint32_t count);

// Returns groups of consecutive ranks with these sizes. check_groups() refuses them if the sizes do not add up to
// `ranks`; no group goes on after rank `ranks`.
Groups groups_of_sizes(const std::vector<uint32_t>& sizes, uint32_t ranks);

// InvalidArgument: a rank of 0 … ranks - 1 is in no group or in two, another rank is in one, or a group is empty.
absl::Status check_groups(const Groups& groups, uint32_t ranks);

}  // namespace gleaner::collective
