// The types of the elements of tensors.
//
// A *plain* type is one in which ranks hold tensors. A *block* type is one in which compressed tensors travel: an
// element of such a type stands for kBlockValues values of fp32 (docs/compression.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace gleaner {

// The values are part of frames (docs/protocol.md) and of the C ABI (gleaner.h), so they must never change.
enum class DataType : uint8_t { kFloat32 = 1, kFloat64 = 2, kFloat16 = 3, kBFloat16 = 4, kInt32 = 5 };

inline constexpr uint32_t kBlockValues = 1024;
inline constexpr uint32_t kMostKept = 128;  // values that a block of top_k() or random_k() has

// The block types. common/kernels/blocks.h has their layouts.
inline constexpr DataType kFloat32Block{6};  // the values themselves; a partial sum of all other blocks
inline constexpr DataType kInt8Block{7};     // a scale, and a signed byte for each value
inline constexpr DataType kInt4Block{8};     // a scale, and 4 bits for each value
inline constexpr DataType kSignBlock{9};     // a scale, and the sign of each value
inline constexpr uint8_t kTopK = 16;         // + log2(k)
inline constexpr uint8_t kRandomK = 24;      // + log2(k)

// Returns the type of blocks that keep the `k` values of the largest magnitude. `k`: a power of two, at most kMostKept.
constexpr DataType top_k(uint32_t k) { return DataType(kTopK + __builtin_ctz(k)); }
// Returns the type of blocks that keep `k` values of random places, which are the same on all ranks.
constexpr DataType random_k(uint32_t k) { return DataType(kRandomK + __builtin_ctz(k)); }
constexpr bool is_top_k(DataType type) { return (static_cast<uint8_t>(type) & 0xF8) == kTopK; }
constexpr bool is_random_k(DataType type) { return (static_cast<uint8_t>(type) & 0xF8) == kRandomK; }
// Returns the k of a type that top_k() or random_k() returned.
constexpr uint32_t kept_of(DataType type) { return 1U << (static_cast<uint8_t>(type) & 7); }

constexpr size_t size_of(DataType type) {
  switch (type) {
    case DataType::kFloat64:
      return 8;
    case DataType::kFloat32:
    case DataType::kInt32:
      return 4;
    case DataType::kFloat16:
    case DataType::kBFloat16:
      return 2;
  }
  if (type == kFloat32Block) return sizeof(float) * kBlockValues;
  if (type == kInt8Block) return sizeof(float) + kBlockValues;
  if (type == kInt4Block) return sizeof(float) + kBlockValues / 2;
  if (type == kSignBlock) return sizeof(float) + kBlockValues / 8;
  if (is_top_k(type)) return (sizeof(uint16_t) + sizeof(float)) * kept_of(type);
  if (is_random_k(type)) return sizeof(float) * kept_of(type);
  return 0;
}

constexpr bool is_valid(DataType type) { return size_of(type) != 0; }
constexpr bool is_plain(DataType type) { return type >= DataType::kFloat32 && type <= DataType::kInt32; }
constexpr bool is_block(DataType type) { return is_valid(type) && !is_plain(type); }
constexpr bool is_16_bit(DataType type) { return type == DataType::kFloat16 || type == DataType::kBFloat16; }
// Returns the number of values of the fp32 or plain type that an element stands for.
constexpr uint32_t values_of(DataType type) { return is_block(type) ? kBlockValues : 1; }
// Returns the number of elements that `values` values take. The last one may stand for fewer.
constexpr uint64_t elements_for(DataType type, uint64_t values) {
  return values / values_of(type) + (values % values_of(type) > 0 ? 1 : 0);
}

// Returns the name that the command line uses, such as "fp32", "bf16", "int8" or "top-8".
absl::string_view name_of(DataType type);
// Returns the plain type of this name.
std::optional<DataType> parse_data_type(absl::string_view name);

}  // namespace gleaner
