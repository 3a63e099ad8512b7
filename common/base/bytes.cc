#include "common/base/bytes.h"

#include <array>
#include <utility>

namespace gleaner {
namespace {

constexpr auto kNames = std::to_array<std::pair<DataType, absl::string_view>>(
    {{DataType::kFloat32, "fp32"},  {DataType::kFloat64, "fp64"}, {DataType::kFloat16, "fp16"},
     {DataType::kBFloat16, "bf16"}, {DataType::kInt32, "int32"},  {kFloat32Block, "fp32-block"},
     {kInt8Block, "int8"},          {kInt4Block, "int4"},         {kSignBlock, "sign"},
     {top_k(1), "top-1"},           {top_k(2), "top-2"},          {top_k(4), "top-4"},
     {top_k(8), "top-8"},           {top_k(16), "top-16"},        {top_k(32), "top-32"},
     {top_k(64), "top-64"},         {top_k(128), "top-128"},      {random_k(1), "random-1"},
     {random_k(2), "random-2"},     {random_k(4), "random-4"},    {random_k(8), "random-8"},
     {random_k(16), "random-16"},   {random_k(32), "random-32"},  {random_k(64), "random-64"},
     {random_k(128), "random-128"}});

}  // namespace

absl::string_view name_of(DataType type) {
  for (const auto& [value, name] : kNames) {
    if (value == type) return name;
  }
  return "invalid";
}

absl::string_view name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kAverage:
      return "average";
    case ReduceOp::kAccumulate:
      return "running sum";
  }
  return "invalid";
}

std::optional<DataType> parse_data_type(absl::string_view name) {
  for (const auto& [value, spelling] : kNames) {
    if (spelling == name && is_plain(value)) return value;
  }
  return std::nullopt;
}

}  // namespace gleaner
