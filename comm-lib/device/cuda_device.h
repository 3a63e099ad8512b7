// A GPU as a Device, by the CUDA driver API. Its streams do not synchronize with the legacy default stream
// (CU_STREAM_NON_BLOCKING), and no call waits for the GPU. The caller's current context is the same after each call.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "comm-lib/device/device.h"
#include "comm-lib/device/driver.h"

namespace gleaner::device {

// Opens the GPU `ordinal` and retains its primary context until the Device and all its streams, events and pinned
// memory are destroyed. `sysfs` is where the NUMA node is looked up.
absl::StatusOr<std::unique_ptr<Device>> open_cuda_device(std::shared_ptr<const Driver> driver, int ordinal,
                                                         const std::string& sysfs = "/sys");

}  // namespace gleaner::device
