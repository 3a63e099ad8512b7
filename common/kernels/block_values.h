// Values of fp32 that become blocks, or come from them (common/base/data_type.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace gleaner::kernels {

// Values of fp32, `count` of them, that become blocks.
struct BlockSource {
  const std::byte* values;
  size_t count;
  float* residual;  // by value, is added to them, and then becomes what the blocks lack; null: none
  float* momentum;  // by value: their sum, whose earlier parts fade by `factor` (Nesterov); null: none
  float factor;
  uint32_t key;        // of random numbers
  size_t first_block;  // number in the tensor
};

// Where the values of blocks go.
struct BlockTarget {
  std::byte* values;
  size_t count;
  uint32_t key;
  size_t first_block;
};

}  // namespace gleaner::kernels
