// The types in which values are added.
#pragma once

#include "common/base/bytes.h"

namespace gleaner {

// Returns the type in which values of `type` are added: fp32 for fp16 and bf16, arrays of fp32 for blocks with a scale
// or with indexes, otherwise the type itself.
constexpr DataType accumulator_of(DataType type) {
  if (is_block(type) && !is_random_k(type)) return kFloat32Block;
  return is_16_bit(type) ? DataType::kFloat32 : type;
}

// Returns whether the type is *narrow*: its sums are made in a wider type.
constexpr bool is_narrow(DataType type) { return accumulator_of(type) != type; }

}  // namespace gleaner
