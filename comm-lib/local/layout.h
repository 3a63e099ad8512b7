// Functions that compute where tensors lie in shared memory, and which rank sums which part of them. Pure.
//
// Tensors that are registered together share one memory file of g + 1 areas: the slots of local ranks 0, 1, ... g - 1,
// which have the same layout, then the sums. The area of the sums has for each tensor its partial sum in the
// accumulator's type and, if that is another type than the tensor's, the result behind it. Areas are page aligned.
// Tensors within them start at multiples of 64 bytes, the size of a cache line, so that no two ranks write to the same
// line.
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
// Smaller slices cost more in messages than they save in time, so only the first ranks sum a small tensor.
inline constexpr size_t kSmallestSlice = 32 << 10;

constexpr size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

struct Slice {
  size_t begin = 0;  // bytes
  size_t end = 0;
};

constexpr size_t slice_bytes(size_t tensor_bytes, uint32_t ranks) {
  return std::max(kSmallestSlice, round_up((tensor_bytes + ranks - 1) / ranks, kLine));
}

// Returns the slice that `rank` of `ranks` sums. The slices of all ranks make up the tensor; empty slices come last.
constexpr Slice slice_of(size_t tensor_bytes, uint32_t ranks, uint32_t rank) {
  const size_t size = slice_bytes(tensor_bytes, ranks);
  const size_t begin = std::min(tensor_bytes, rank * size);
  return {begin, std::min(tensor_bytes, begin + size)};
}

// Returns the number of ranks whose slice is not empty.
constexpr uint32_t reducers(size_t tensor_bytes, uint32_t ranks) {
  const size_t size = slice_bytes(tensor_bytes, ranks);
  return static_cast<uint32_t>((tensor_bytes + size - 1) / size);
}

// Where a tensor lies, in bytes.
struct TensorOffsets {
  size_t slot = 0;    // within the area of a slot
  size_t sum = 0;     // of the partial sum, within the area of the sums
  size_t result = 0;  // of the result, within the area of the sums; the same as `sum` if their types are the same
};

struct Layout {
  uint32_t first = 0;                  // id of the first tensor
  uint32_t ranks = 0;                  // g
  std::vector<TensorOffsets> offsets;  // by tensor
  size_t slot_bytes = 0;               // of the area of a slot
  size_t sums_bytes = 0;               // of the area of the sums
  Digest digest{};                     // SHA-256 of `first` and all shapes

  size_t sums_begin() const { return ranks * slot_bytes; }
  size_t total_bytes() const { return sums_begin() + sums_bytes; }
};

// Returns the layout of tensors, the first of which has the id `first`. InvalidArgument: a tensor has an unknown type,
// or the tensors need more memory than local ranks can share.
absl::StatusOr<Layout> lay_out(std::span<const TensorShape> tensors, uint32_t first, uint32_t ranks);

}  // namespace gleaner::local
