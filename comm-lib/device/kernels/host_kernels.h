// The sums of the host device, by common/kernels. They have happened when the call returns.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "comm-lib/device/kernels/kernels.h"

namespace gleaner::device {

absl::StatusOr<std::unique_ptr<Kernels>> load_host_kernels();

}  // namespace gleaner::device
