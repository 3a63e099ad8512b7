#include "comm-lib/device/locate.h"

#include "common/base/status_macros.h"

namespace gleaner::device {

absl::StatusOr<Location> locate(const Driver* driver, Address address) {
  if (driver == nullptr) return Location{};
  GLN_RETURN_IF_ERROR(driver->check_process());
  const auto pointer = static_cast<CUdeviceptr>(address);
  const auto get = [&](CUpointer_attribute attribute, void* value) {
    return driver->api().cuPointerGetAttribute(value, attribute, pointer);
  };

  unsigned type = 0;
  const CUresult known = get(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &type);
  if (known == CUDA_ERROR_INVALID_VALUE) return Location{};  // no memory of the driver
  GLN_RETURN_IF_ERROR(driver->check(known, "find the memory of a pointer"));
  // The driver writes a boolean of 1 or 4 bytes, by its version.
  unsigned managed = 0;
  GLN_RETURN_IF_ERROR(
      driver->check(get(CU_POINTER_ATTRIBUTE_IS_MANAGED, &managed), "find whether a pointer's memory is managed"));
  if (managed == 0 && type == CU_MEMORYTYPE_HOST) return Location{MemoryKind::kPinned, Place{}};
  Location location{managed != 0 ? MemoryKind::kManaged : MemoryKind::kDevice, Place{}};
  GLN_RETURN_IF_ERROR(
      driver->check(get(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, &location.place.ordinal), "find the GPU of a pointer"));
  return location;
}

}  // namespace gleaner::device
