// Functions that convert between the types of Core and the messages of coordinator.proto. Pure.
#pragma once

#include <optional>

#include "common/proto/coordinator.pb.h"
#include "coordinator/core.h"

namespace gleaner::coordinator {

Identity decode(const v1::Identity& message);
// Checks the name of the tensor for which the reporting rank waits, if there is one.
absl::Status check_waiting(const v1::Report& message);
// Returns the oldest push_pull that the reporting rank waits for, if there is one. The report came at `now`.
std::optional<Waiting> decode_waiting(const v1::Report& message, absl::Duration now);
// Keeps at most 64 epochs, more than a rank sends. A time that is negative or not finite becomes 0.
Report decode(const v1::Report& message);
std::optional<Resume> decode_resume(const v1::Join& message);

// Encodes any message except two: Welcome needs data that Core does not have, and Rejected becomes the status that ends
// the stream.
v1::CoordinatorMessage encode(const Message& message);

}  // namespace gleaner::coordinator
