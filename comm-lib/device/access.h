// Access tells where the memory of a request is, and when it may be used. Input and output are in the memory of one
// device. On a GPU their spans hold addresses of its memory (device.h), which the host must not touch.
#pragma once

#include "comm-lib/device/device.h"

namespace gleaner::device {

struct Access {
  Device* device = nullptr;      // the GPU that has the memory; null: the host
  CallerStream producer{};       // the program's stream that makes the input
  const Event* ready = nullptr;  // recorded on `producer`: the memory may be used after it
  // Recorded when the request ends, if copies that use its memory are still queued then: the program's stream waits for
  // it.
  Event* copied = nullptr;
  bool is_host() const { return device == nullptr; }
};

}  // namespace gleaner::device
