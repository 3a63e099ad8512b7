// The size of the blocks of memory that a BufferPool allocates.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

namespace gleaner {

inline constexpr size_t kSmallestBlock = 4096;  // a page

// Returns the size of the block behind a buffer of `bytes` bytes: a power of two, at least a page. Returns 0 for 0,
// since an empty buffer has no block.
constexpr size_t block_size(size_t bytes) { return bytes == 0 ? 0 : std::bit_ceil(std::max(bytes, kSmallestBlock)); }

}  // namespace gleaner
