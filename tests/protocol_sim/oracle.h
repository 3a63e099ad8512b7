// The oracle: computes the bits that every sum must have, with simple scalar code that is independent of
// common/kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/plan.h"

namespace gleaner::sim {

// Returns a worker's contribution to a tensor at a step, made from the seed: mostly ordinary numbers, and some
// infinities, NaNs and subnormal numbers.
std::vector<std::byte> contribution(uint64_t seed, const plan::Tensor& tensor, uint32_t id, uint64_t step,
                                    uint32_t worker);

// Returns the sum of the contributions, added in their order and divided by `divisor`.
std::vector<std::byte> reduce(DataType type, const std::vector<std::vector<std::byte>>& contributions,
                              uint32_t divisor);

}  // namespace gleaner::sim
