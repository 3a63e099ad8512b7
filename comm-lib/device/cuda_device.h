// A GPU as a Device, by the CUDA driver API. Its streams do not synchronize with the legacy default stream
// (CU_STREAM_NON_BLOCKING), and no call waits for the GPU. The caller's current context is the same after each call.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "comm-lib/device/cuda_api.h"
#include "comm-lib/device/device.h"
#include "comm-lib/device/driver.h"

namespace gleaner::device {

class CudaContext;

// Opens the GPU `ordinal` and retains its primary context until the Device and all its streams, events and pinned
// memory are destroyed. `sysfs` is where the NUMA node is looked up.
absl::StatusOr<std::unique_ptr<Device>> open_cuda_device(std::shared_ptr<const Driver> driver, int ordinal,
                                                         const std::string& sysfs = "/sys");

// For libraries that call the driver, or a library over it, themselves. cuda_context_of() returns the context of a
// device that open_cuda_device() opened. cuda_stream_of() returns the driver's stream; nullopt: the stream is of
// another place.
std::shared_ptr<const CudaContext> cuda_context_of(const Device& device);
std::optional<CUstream> cuda_stream_of(const Stream& stream, Place place);

}  // namespace gleaner::device
