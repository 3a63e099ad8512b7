// Memory of a device, such as a GPU, that the adapter reads and writes itself (GPUDirect): registered by the dma-buf
// that the device's driver exports for it. Nothing here needs the device's own libraries.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "common/transport/rdma/verbs.h"

namespace gleaner::transport::rdma {

// A part of a dma-buf. CUDA gives its descriptor by cuMemGetHandleForAddressRange().
struct DeviceMemory {
  int descriptor = -1;
  uint64_t offset = 0;  // of the part within the dma-buf
  size_t bytes = 0;
  uint64_t address = 0;  // what the adapter shall call its begin
};

// Whether the adapter takes device memory: tried with a dma-buf that no device has made, which tells a driver that
// knows them from one that does not. Unimplemented, and why, where it does not.
absl::Status check_device_memory(ibv_pd* domain);

// Unimplemented: adapter, driver or kernel can't. ResourceExhausted: no more of it. InvalidArgument: no dma-buf, or not
// that large.
absl::StatusOr<MemoryRegion> register_device_memory(ibv_pd* domain, const DeviceMemory& memory, int access);

}  // namespace gleaner::transport::rdma
