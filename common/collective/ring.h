// The ring all-reduce: 2(n-1) steps, in each of which every rank sends one of n chunks to the next rank. First each
// chunk travels once around the ring and is summed, then it travels around once more and is copied.
// Source: BytePS §2.3; Luo §5.2.1. Bytes sent by each rank: 2(n-1)/n of the vector, which is optimal.
#pragma once

#include <cstdint>

#include "common/collective/schedule.h"

namespace gleaner::collective {

// Requires ranks >= 1.
Schedule ring(uint32_t ranks, OnlyRank only = {});

}  // namespace gleaner::collective
