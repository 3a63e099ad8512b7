// Turns error codes of the CUDA driver into statuses that say what to do. Codes that callers act on:
//   NotFound            this machine or container has no driver or no device: go on without CUDA
//   ResourceExhausted   no pinned or device memory is left: use less and try again
//   DataLoss            a kernel or the device failed, and the driver refuses everything else in this process
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "comm-lib/device/cuda_api.h"

namespace gleaner::device {

// Returns the error "can't `action`: NAME (number): advice". `name` is that of cuGetErrorName(). `result` is no
// success.
absl::Status cuda_error(CUresult result, absl::string_view name, absl::string_view action);

}  // namespace gleaner::device
