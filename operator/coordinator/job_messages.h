// What a Core says and what its members say, as messages of coordinator.proto. Pure.
#pragma once

#include <optional>

#include "common/proto/coordinator.pb.h"
#include "operator/coordinator/core.h"

namespace gleaner::coordinator {

Identity decode(const v1::Identity& message);
// What a report says that its rank waits for; it came at `now`.
std::optional<Waiting> decode_waiting(const v1::Report& message, absl::Duration now);
// Of the epochs no more than a rank sends; times that are no numbers count as none.
Report decode(const v1::Report& message);
std::optional<Resume> decode_resume(const v1::Join& message);

// All but Welcome, which says more than the Core knows, and Rejected, which is the status that the stream ends with.
v1::CoordinatorMessage encode(const Message& message);

}  // namespace gleaner::coordinator
