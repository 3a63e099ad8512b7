// Values that show mistakes of sums.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "common/base/bytes.h"

namespace gleaner::kernels {

// Returns bits that are difficult for the type: all kinds of NaN, infinities, subnormal numbers, zeros, ties, the
// greatest and the least numbers.
std::vector<uint64_t> hard_values(DataType type);

// Fills the memory with random bits and, in half of the elements, with hard values.
void fill(DataType type, MutableBytes bytes, std::mt19937_64& random);

}  // namespace gleaner::kernels
