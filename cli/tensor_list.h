// The tensors of a job as the command line names them: a JSON file, or one size.
//
// A file is a list of {"name", "bytes"} in generation order, each with "dtype" (fp32, fp64, fp16, bf16, int32) if
// wanted. Without it a size that is a multiple of 4 means fp32, and any other multiple of 2 fp16: only alignment
// depends on it. Errors: NotFound or Unavailable when the file can't be read, InvalidArgument when it says something
// else; the message names the file and the tensor.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/plan.h"

namespace gleaner::cli {

absl::StatusOr<std::vector<plan::Tensor>> read_tensors(const std::string& path);

// `size`: "64MiB". One tensor of the name "tensor".
absl::StatusOr<std::vector<plan::Tensor>> one_tensor(const std::string& size);

}  // namespace gleaner::cli
