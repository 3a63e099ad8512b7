// TraceOrder is an order about a trace, which an observer sends to members through the coordinator (docs/trace.md).
#pragma once

#include <cstdint>

namespace gleaner::control {

enum class TraceOrder { kRecord, kStop, kSend, kForget };  // as in coordinator.proto

// The order to a member.
struct Trace {
  TraceOrder order = TraceOrder::kRecord;
  uint64_t recording = 0;  // number of the recording; the answer to kSend repeats it
  friend bool operator==(const Trace&, const Trace&) = default;
};

}  // namespace gleaner::control
