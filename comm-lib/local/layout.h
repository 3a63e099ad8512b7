// Where tensors lie in shared memory, and which rank sums what. Pure.
//
// Tensors that are registered together share one memory file of g + 1 areas of the same form: the slots of local rank
// 0, 1, ... g-1, then the sums. Areas are page aligned, tensors within them start at multiples of 64 bytes (a cache
// line, so that no two ranks write to the same one).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "comm-lib/local/group.h"
#include "comm-lib/local/message.h"

namespace gleaner::local {

inline constexpr size_t kLine = 64;
// Smaller slices cost more in messages than they save in time: small tensors are summed by the first ranks alone.
inline constexpr size_t kSmallestSlice = 32 << 10;

constexpr size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

struct Slice {
  size_t begin = 0;  // bytes
  size_t end = 0;
};

constexpr size_t slice_bytes(size_t tensor_bytes, uint32_t ranks) {
  return std::max(kSmallestSlice, round_up((tensor_bytes + ranks - 1) / ranks, kLine));
}

// What `rank` of `ranks` sums. The slices of all ranks make up the tensor, and the empty ones come last.
constexpr Slice slice_of(size_t tensor_bytes, uint32_t ranks, uint32_t rank) {
  const size_t size = slice_bytes(tensor_bytes, ranks);
  const size_t begin = std::min(tensor_bytes, rank * size);
  return {begin, std::min(tensor_bytes, begin + size)};
}

// How many ranks have something to sum.
constexpr uint32_t reducers(size_t tensor_bytes, uint32_t ranks) {
  const size_t size = slice_bytes(tensor_bytes, ranks);
  return static_cast<uint32_t>((tensor_bytes + size - 1) / size);
}

struct Layout {
  uint32_t first = 0;           // id of the first tensor
  uint32_t ranks = 0;           // g
  std::vector<size_t> offsets;  // of each tensor within an area
  size_t area_bytes = 0;
  Digest digest{};  // of `first` and all shapes

  size_t total_bytes() const { return (ranks + size_t{1}) * area_bytes; }
};

// InvalidArgument: an unknown type, or more than an address space holds.
absl::StatusOr<Layout> lay_out(std::span<const TensorShape> tensors, uint32_t first, uint32_t ranks);

}  // namespace gleaner::local
