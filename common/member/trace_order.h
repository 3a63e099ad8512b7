// TraceOrder is an order about a trace, which an observer sends to members through the coordinator (docs/trace.md).
#pragma once

#include <optional>

#include "common/trace/recorder.h"

namespace gleaner::member {

enum class TraceOrder { kRecord, kStop, kSend, kForget };  // as in coordinator.proto

// Carries out an order. Returns the recording to send, if the order asks for it.
std::optional<trace::Recording> obey(TraceOrder order, trace::Recorder& recorder);

}  // namespace gleaner::member
