// Spans of raw bytes, and the data types and operations of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include "absl/strings/string_view.h"

namespace gleaner {

using ConstBytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// The values are part of frames (docs/protocol.md) and of the C ABI (gleaner.h), so they must never change.
enum class DataType : uint8_t { kFloat32 = 1, kFloat64 = 2, kFloat16 = 3, kBFloat16 = 4, kInt32 = 5 };

// The operation of a push_pull. kSum: the sum over all ranks. kAverage: that sum divided by the number of ranks,
// rounded once. kAccumulate: a running sum of all contributions so far, to which each worker adds at its own pace.
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

// Returns the name that the command line uses: "fp32", "fp64", "fp16", "bf16" or "int32".
absl::string_view name_of(DataType type);
std::optional<DataType> parse_data_type(absl::string_view name);
// Returns "sum", "average" or "running sum".
absl::string_view name_of(ReduceOp op);

}  // namespace gleaner
