// Traces as the messages of coordinator.proto, and back. Pure.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/member/client.h"
#include "common/proto/coordinator.pb.h"
#include "common/trace/event.h"

namespace gleaner::member {

v1::TraceOrder encode(TraceOrder order);
std::optional<TraceOrder> decode(v1::TraceOrder order);  // none: of a later version

// In pieces, so that no message is long; the last one says so.
std::vector<v1::Traced> encode(uint64_t recording, const trace::Recording& what);
// Adds a piece to what came before it. InvalidArgument: it is none.
absl::Status append(const v1::Traced& piece, trace::Recording& what);

}  // namespace gleaner::member
