#include "comm-lib/runtime/host_sum.h"

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "comm-lib/runtime/config.h"
#include "common/base/status_macros.h"
#include "common/kernels/kernels.h"

namespace gleaner::runtime {
namespace {

absl::Status check_op(DataType type, ReduceOp op) {
  if (!is_plain(type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("data type ", static_cast<int>(type), " is not a value of gln_data_type"));
  }
  if (op != ReduceOp::kSum && op != ReduceOp::kAverage) {
    return absl::InvalidArgumentError(
        absl::StrCat("op ", static_cast<int>(op), ": memory has the ops GLN_SUM and GLN_AVERAGE"));
  }
  if (op == ReduceOp::kAverage && type == DataType::kInt32) {
    return absl::InvalidArgumentError("int32 has no average: its quotient would be cut off");
  }
  return absl::OkStatus();
}

absl::Status check_memory(const std::vector<const std::byte*>& sources, const std::byte* output, uint64_t bytes) {
  if (output == nullptr) return absl::InvalidArgumentError("output is NULL");
  const auto to = reinterpret_cast<uintptr_t>(output);
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i] == nullptr) return absl::InvalidArgumentError(absl::StrCat("source ", i, " is NULL"));
    const auto from = reinterpret_cast<uintptr_t>(sources[i]);
    const uintptr_t distance = from < to ? to - from : from - to;
    if (distance != 0 && distance < bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("output and source ", i, " overlap in part: they must be the same memory or not overlap"));
    }
  }
  return absl::OkStatus();
}

// Never destroyed, since threads may sum while the process exits.
const absl::StatusOr<kernels::Kernels>& chosen_kernels() {
  static const auto* const chosen = new absl::StatusOr<kernels::Kernels>(read_kernels());
  return *chosen;
}

}  // namespace

absl::Status sum_on_host(DataType type, ReduceOp op, const std::vector<const std::byte*>& sources, std::byte* output,
                         uint64_t elements) {
  GLN_RETURN_IF_ERROR(check_op(type, op));
  if (sources.empty()) return absl::InvalidArgumentError("count is 0, expected at least one source");
  if (elements > SIZE_MAX / size_of(type)) {
    return absl::InvalidArgumentError(absl::StrCat(elements, " elements do not fit into memory"));
  }
  if (elements == 0) return absl::OkStatus();
  GLN_RETURN_IF_ERROR(check_memory(sources, output, elements * size_of(type)));
  const absl::StatusOr<kernels::Kernels>& kernels = chosen_kernels();
  if (!kernels.ok()) return kernels.status();
  const uint32_t divisor = op == ReduceOp::kAverage ? static_cast<uint32_t>(sources.size()) : 1;
  kernels->sum(type, sources, output, elements, divisor);
  return absl::OkStatus();
}

absl::Status l1_norms_on_host(DataType type, const std::byte* values, uint64_t rows, uint64_t columns, float* norms) {
  if (!is_plain(type) || type == DataType::kInt32) {
    return absl::InvalidArgumentError(
        absl::StrCat("data type ", static_cast<int>(type), ": norms are of GLN_FLOAT32, FLOAT64, FLOAT16 or BFLOAT16"));
  }
  if (rows == 0) return absl::OkStatus();
  if (values == nullptr) return absl::InvalidArgumentError("values is NULL");
  if (norms == nullptr) return absl::InvalidArgumentError("norms is NULL");
  if (columns > SIZE_MAX / size_of(type) / rows) {
    return absl::InvalidArgumentError(absl::StrCat(rows, " rows of ", columns, " elements do not fit into memory"));
  }
  const absl::StatusOr<kernels::Kernels>& kernels = chosen_kernels();
  if (!kernels.ok()) return kernels.status();
  kernels->l1_norms(type, values, rows, columns, norms);
  return absl::OkStatus();
}

}  // namespace gleaner::runtime
