// Hashes that make a simulation a function of its seed.
#pragma once

#include <cstdint>

#include "common/base/mix.h"

namespace gleaner::netsim {

// Mixes the bits of two numbers.
constexpr uint64_t mix(uint64_t a, uint64_t b) { return mix_bits(a + kSplitmix64Step * (b + 1)); }

}  // namespace gleaner::netsim
