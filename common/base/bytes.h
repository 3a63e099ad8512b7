// Spans of raw bytes, and the operations of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"
#include "common/base/data_type.h"

namespace gleaner {

using ConstBytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// The operation of a push_pull. kSum: the sum over all ranks. kAverage: that sum divided by the number of ranks,
// rounded once. kAccumulate: a running sum of all contributions so far, to which each worker adds at its own pace.
enum class ReduceOp : uint8_t { kSum = 1, kAverage = 2, kAccumulate = 3 };

constexpr bool is_valid(ReduceOp op) { return op >= ReduceOp::kSum && op <= ReduceOp::kAccumulate; }

// Returns "sum", "average" or "running sum".
absl::string_view name_of(ReduceOp op);

}  // namespace gleaner
