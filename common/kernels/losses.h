// count_losses() counts the fp32 elements that lost their value in a conversion to a 16-bit type. Internal to this
// folder, and included as variant.h says: each translation unit has its own copy, for its instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/kernels/variant.h"

namespace gleaner::kernels {
namespace {

// Returns whether some rounded element is zero, infinite or NaN. Most blocks of gradients have none, and this reads
// half the bytes of the elements before the rounding.
bool has_unusual(const std::byte* rounded, size_t elements, uint16_t infinity) {
  uint16_t greatest = 0;
  for (size_t i = 0; i < elements; ++i) {
    uint16_t bits;
    std::memcpy(&bits, rounded + i * sizeof(bits), sizeof(bits));
    const auto less_one = static_cast<uint16_t>((bits & 0x7FFF) - 1);  // zero becomes the greatest number
    greatest = less_one > greatest ? less_one : greatest;
  }
  return greatest >= infinity - 1;
}

void count_losses(const std::byte* source, const std::byte* rounded, size_t elements, const LossLimits& limits,
                  uint64_t* counts) {
  constexpr int32_t kInfinity = 0x7F800000;
  if (!has_unusual(rounded, elements, limits.infinity)) return;
  const auto finite_range = static_cast<uint32_t>(kInfinity - limits.clipped);
  int32_t clipped = 0;
  int32_t flushed = 0;
  for (size_t i = 0; i < elements; ++i) {
    int32_t bits;
    std::memcpy(&bits, source + i * sizeof(bits), sizeof(bits));
    bits &= 0x7FFFFFFF;
    // One unsigned comparison each: a difference below 0 is a large number.
    clipped += static_cast<int32_t>(static_cast<uint32_t>(bits - limits.clipped) < finite_range);
    flushed += static_cast<int32_t>(static_cast<uint32_t>(bits - 1) < static_cast<uint32_t>(limits.flushed));
  }
  counts[0] += static_cast<uint64_t>(clipped);
  counts[1] += static_cast<uint64_t>(flushed);
}

}  // namespace
}  // namespace gleaner::kernels
