// PLink's two-level hierarchical aggregation. Each chunk has a local master in every group, and one of these is its
// global master. In four steps all ranks send the chunk to the local masters of their groups, these send their sums to
// the global master, and the result goes back the same way. So each group but the global master's sends and receives
// the chunk once.
//
// There are as many chunks as ranks. Each rank is the global master of one of them, and the other chunks are spread
// evenly over a group's members as local masters. A rank sends its vector but for its own part, and each local master
// sends a chunk to the group |G| - 1 times (Quicktune's terms in §4.2.3, which count a rank itself, too). MasterCounts
// gives ranks other numbers of chunks.
//
// Source: PLink, in Luo §4.2; the number of groups that loads a global master least is √n (Eq. 4.2).
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/collective/schedule.h"
#include "common/collective/spec.h"

namespace gleaner::collective {

// Returns the number of groups that two_level() uses by default: √n, rounded down (Luo Eq. 4.2).
uint32_t default_groups(uint32_t ranks);

// InvalidArgument: there is no count for each rank, a rank has more global than local chunks, the local ones of a group
// are not as many as there are chunks, or there is none.
absl::Status check_masters(const MasterCounts& counts, uint32_t ranks, const Groups& groups);

// Requires groups that check_groups() accepts, and counts that check_masters() does. Without counts each rank is the
// global master of one chunk.
Schedule two_level(uint32_t ranks, const Groups& groups, const MasterCounts* counts = nullptr, OnlyRank only = {});

}  // namespace gleaner::collective
