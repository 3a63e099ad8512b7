// What every sum must be, bit for bit, computed by simple scalar code that shares nothing with common/kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/plan.h"

namespace gleaner::sim {

// A worker's part of a tensor at a step, made from the seed: mostly ordinary numbers, some infinities, NaNs,
// subnormals.
std::vector<std::byte> contribution(uint64_t seed, const plan::Tensor& tensor, uint32_t id, uint64_t step,
                                    uint32_t worker);

// The sum of these contributions in their order; `divisor` 1 is a plain sum.
std::vector<std::byte> reduce(DataType type, const std::vector<std::vector<std::byte>>& contributions,
                              uint32_t divisor);

}  // namespace gleaner::sim
