// The halving-doubling all-reduce (vector halving, distance doubling). In step s of the first half, rank r exchanges
// half of its range with rank r XOR 2^s and keeps the sum of the other half, so that after log2(n) steps each rank has
// the sum of one chunk. The second half runs the steps backwards and copies. Source: EFLOPS §V-A; Luo §5.2.1.
//
// Other counts than powers of two: with p the largest power of two below n, each odd rank below 2(n-p) first sends its
// whole vector to the even rank before it, and receives the result from that rank at the end. The p other ranks run the
// algorithm. That costs two steps more, and the whole vector in each of them.
#pragma once

#include <cstdint>

#include "common/collective/schedule.h"

namespace gleaner::collective {

// Requires ranks >= 1.
Schedule halving_doubling(uint32_t ranks, OnlyRank only = {});

}  // namespace gleaner::collective
