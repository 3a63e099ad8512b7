// Spans of raw bytes, and the data types a tensor may have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include "absl/strings/string_view.h"

namespace gleaner {

using ConstBytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// Values travel in frames (docs/protocol.md) and in the C ABI (gleaner.h): never renumber.
enum class DataType : uint8_t { kFloat32 = 1, kFloat64 = 2, kFloat16 = 3, kBFloat16 = 4, kInt32 = 5 };

// What a push_pull computes: the sum over all ranks, that sum divided by their number before the one rounding, or a
// running sum of all that was ever pushed, to which each worker adds at its own pace.
enum class ReduceOp : uint8_t { kSum = 1, kAverage = 2, kAccumulate = 3 };

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
  return 0;
}

constexpr bool is_valid(DataType type) { return size_of(type) != 0; }
constexpr bool is_valid(ReduceOp op) { return op >= ReduceOp::kSum && op <= ReduceOp::kAccumulate; }

// "fp32", "fp64", "fp16", "bf16", "int32": the names of the command line.
absl::string_view name_of(DataType type);
std::optional<DataType> parse_data_type(absl::string_view name);
// "sum", "average", "running sum".
absl::string_view name_of(ReduceOp op);

}  // namespace gleaner
