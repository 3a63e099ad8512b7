// The host as a Device: "device memory" is memory of this process, and everything has happened when a call returns.
// Pinned memory is plain memory, since no GPU reads it. Never fails, but for the checks of events and streams that
// device.h describes.
#pragma once

#include <memory>

#include "comm-lib/device/device.h"

namespace gleaner::device {

std::unique_ptr<Device> open_host_device();

}  // namespace gleaner::device
