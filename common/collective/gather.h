// gather() is an all-gather by dissemination. In step i rank r sends all blocks that it has, those of the 2^i ranks
// from r on, to rank r - 2^i, and receives as many new ones from rank r + 2^i (all modulo n; in the last step only the
// blocks that are missing). So it takes ceil(log2 n) steps, the fewest possible. Each rank sends and receives n - 1
// contributions, and then adds all n by itself, in any order that it likes: in rank order, for the bits of a sum by an
// owner. Source: Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing
// systems" (1997), section 4, without its rotation: blocks lie in rank order, so blocks that wrap around are two
// messages.
//
//   n = 4      has before step 0   step 0: from r + 1   step 1: from r + 2
//   rank 0     0                   0 1                  0 1 2 3
//   rank 3     3                   3 0                  3 0 1 2
#pragma once

#include <cstdint>

#include "common/collective/schedule.h"

namespace gleaner::collective {

// Requires ranks >= 1.
Schedule gather(uint32_t ranks, OnlyRank only = {});

}  // namespace gleaner::collective
