// The sums of a GPU, by kernels that the CUDA driver loads.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "comm-lib/device/kernels/kernels.h"

namespace gleaner::device {

// Loads an image of cuModuleLoadData(). Unimplemented: it is empty.
absl::StatusOr<std::unique_ptr<Kernels>> load_cuda_kernels(Device& device, ConstBytes image);

}  // namespace gleaner::device
