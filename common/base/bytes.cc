#include "common/base/bytes.h"

#include <array>
#include <utility>

namespace gleaner {
namespace {

constexpr std::array<std::pair<DataType, absl::string_view>, 5> kNames = {{{DataType::kFloat32, "fp32"},
                                                                           {DataType::kFloat64, "fp64"},
                                                                           {DataType::kFloat16, "fp16"},
                                                                           {DataType::kBFloat16, "bf16"},
                                                                           {DataType::kInt32, "int32"}}};

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
    if (spelling == name) return value;
  }
  return std::nullopt;
}

}  // namespace gleaner
