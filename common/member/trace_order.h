// A member's reaction to an order about a trace (docs/trace.md).
#pragma once

#include <optional>

#include "common/control/trace_order.h"
#include "common/trace/recorder.h"

namespace gleaner::member {

// Carries out an order. Returns the recording to send, if the order asks for it.
std::optional<trace::Recording> obey(control::TraceOrder order, trace::Recorder& recorder);

}  // namespace gleaner::member
