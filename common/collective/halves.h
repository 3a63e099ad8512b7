// The halves of an all-reduce (scatter.h) among all ranks, as collectives of their own: the reduce-scatter of a ring,
// by recursive halving, or direct, and the all-gather of a ring. In each a rank sends n - 1 blocks, the fewest
// possible.
//
// Recursive halving pairs ranks at distance n/2 first, then n/4, and so on, so that rank r ends with block r.
//
// Source: Chan et al., "Collective communication: theory, practice, and experience" (2007), its bucket and its
// recursive halving algorithms; Thakur et al., "Optimization of collective communication operations in MPICH" (2005).
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/collective/scatter.h"
#include "common/collective/schedule.h"

namespace gleaner::collective {

// InvalidArgument: recursive halving among a number of ranks that is no power of two.
absl::StatusOr<Schedule> reduce_scatter(uint32_t ranks, ScatterKind kind, OnlyRank only = {});

Schedule ring_all_gather(uint32_t ranks, OnlyRank only = {});

}  // namespace gleaner::collective
