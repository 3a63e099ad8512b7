// Finds the memory that a pointer of the caller refers to (cuPointerGetAttribute).
#pragma once

#include "absl/status/statusor.h"
#include "comm-lib/device/device.h"
#include "comm-lib/device/driver.h"

namespace gleaner::device {

// kPageable: host memory that the driver does not know. kPinned: host memory that it has allocated or registered.
// kManaged: memory that the driver moves between the host and GPUs, which both may touch. kDevice: a GPU's memory.
enum class MemoryKind { kPageable, kPinned, kManaged, kDevice };

struct Location {
  MemoryKind kind = MemoryKind::kPageable;
  Place place;  // of kManaged and kDevice: the GPU for which the memory was allocated; otherwise the host
};

// `driver` is null on a machine without one, where all memory is pageable. An address that is in no memory is taken for
// a pageable one. Thread safe.
absl::StatusOr<Location> locate(const Driver* driver, Address address);

}  // namespace gleaner::device
