// direct() sends each block straight from the rank that has it to the rank that wants it: a gather and a scatter in one
// step, an all-gather and an all-to-all in n - 1 steps, in step s of which rank i sends its block to rank i + s + 1
// (modulo n). So in each of these steps a rank sends one block and receives one. Source: Thakur et al., "Optimization
// of collective communication operations in MPICH" (2005), the all-to-all of long messages.
#pragma once

#include <cstdint>

#include "common/collective/schedule.h"

namespace gleaner::collective {

// Requires an all-gather, gather, scatter or all-to-all.
Schedule direct(const Collective& collective, OnlyRank only = {});

}  // namespace gleaner::collective
