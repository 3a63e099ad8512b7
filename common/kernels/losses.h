// count_losses() counts the fp32 elements that lose their value in a conversion to a 16-bit type. Internal to this
// folder, and included as variant.h says: each translation unit has its own copy, for its instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gleaner::kernels {
namespace {

// Counts the elements by their bits without the sign. From `clipped` on, finite values round to infinity; up to
// `flushed`, other values than zero round to zero.
void count_losses(const std::byte* source, size_t elements, int32_t clipped, int32_t flushed, uint64_t* counts) {
  constexpr int32_t kInfinity = 0x7F800000;
  constexpr size_t kBlock = 4096;  // few enough for 32-bit counters, which vectorize better
  for (size_t begin = 0; begin < elements; begin += kBlock) {
    const size_t block = elements - begin < kBlock ? elements - begin : kBlock;
    int32_t clipped_here = 0;
    int32_t flushed_here = 0;
    for (size_t i = 0; i < block; ++i) {
      int32_t bits;
      std::memcpy(&bits, source + (begin + i) * sizeof(bits), sizeof(bits));
      bits &= 0x7FFFFFFF;
      clipped_here += static_cast<int32_t>(bits >= clipped) & static_cast<int32_t>(bits < kInfinity);
      flushed_here += static_cast<int32_t>(bits > 0) & static_cast<int32_t>(bits <= flushed);
    }
    counts[0] += static_cast<uint64_t>(clipped_here);
    counts[1] += static_cast<uint64_t>(flushed_here);
  }
}

}  // namespace
}  // namespace gleaner::kernels
