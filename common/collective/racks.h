// The all-reduce of PHub's hierarchical reduction: the first rank of each rack sums the vectors of its rack, these
// masters form a ring across the racks, and each copies the result to its rack. So a link between racks carries
// 2(r-1)/r vectors each way for r racks, however many ranks a rack has; a master receives as many vectors as its rack
// has other ranks, in one step. Where racks have equal sizes, BlueConnect and two-level spread that load over all
// ranks.
//
// Source: PHub, in Luo §2.3, with the racks forming a ring. PHub has a machine of its own, with a NIC for every few
// workers, in the place of the master. With p_0 ranks a rack it is also the two-level scheme of BlueConnect Eq. 4.
#pragma once

#include <cstdint>

#include "common/collective/schedule.h"

namespace gleaner::collective {

// Requires groups that check_groups() accepts.
Schedule racks(uint32_t ranks, const Groups& groups, OnlyRank only = {});

}  // namespace gleaner::collective
