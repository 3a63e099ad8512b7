// Reads the list of tensors that the command line gives: a JSON file (--tensors) or one size (--bytes).
//
// The file is a list of {"name", "bytes"} in generation order, each optionally with "dtype" (fp32, fp64, fp16, bf16 or
// int32). Without "dtype", a size that is a multiple of 4 means fp32, and any other multiple of 2 means fp16; only
// alignment and, for workers of several ranks, the size of pushes depend on this choice. A `type` that is passed counts
// for all tensors instead. Errors: NotFound or
// Unavailable if the file can't be read, InvalidArgument if its content is not such a list. The message names the file
// and the tensor.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/plan.h"

namespace gleaner::cli {

absl::StatusOr<std::vector<plan::Tensor>> read_tensors(const std::string& path,
                                                       std::optional<DataType> type = std::nullopt);

// Returns one tensor with the name "tensor" and this size, for example "64MiB".
absl::StatusOr<std::vector<plan::Tensor>> one_tensor(const std::string& size,
                                                     std::optional<DataType> type = std::nullopt);

}  // namespace gleaner::cli
