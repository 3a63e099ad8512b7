// How much of the machine's memory a buffer of a BufferPool takes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

namespace gleaner {

inline constexpr size_t kSmallestBlock = 4096;  // a page

// The size of the block behind a buffer of `bytes` bytes: a power of two, at least a page; 0 for 0, which has none.
constexpr size_t block_size(size_t bytes) { return bytes == 0 ? 0 : std::bit_ceil(std::max(bytes, kSmallestBlock)); }

}  // namespace gleaner
