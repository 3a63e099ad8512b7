// Groups GPUs that NVLinks join directly, without an NVSwitch: two GPUs with a bridge, or four of a hybrid cube mesh.
// Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "common/machine/machine.h"

namespace gleaner::machine {

// All NVLinks between GPUs `a` and `b`.
struct DirectLink {
  uint32_t a = 0, b = 0;
  Bandwidth bandwidth;
};

struct DirectGroups {
  std::vector<NvlinkGroup> groups;  // disjoint, the largest first
  uint32_t links_between = 0;       // pairs of GPUs that links join, but no group does
};

// Returns groups in each of which links join every two GPUs, as GPUs sum by NVLink only if each reaches each. A group's
// bandwidth is that of its slowest link, for each other GPU of the group. `links`: one for each two GPUs at most.
//
// The largest group is chosen first, of equal ones the fastest, then the one with the first GPU. A group grows from a
// GPU by the GPU that keeps the most candidates, so it need not be the largest that there is. In a DGX-1's hybrid cube
// mesh of 8 GPUs the groups are its two squares; the four links between the squares are in no group.
DirectGroups group_by_direct_links(uint32_t gpus, const std::vector<DirectLink>& links);

}  // namespace gleaner::machine
