// Functions that check frames from owners against the plan. Errors name the tensor, the owner and the
// expected value.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"

namespace gleaner::session {

// Returns a description of a frame: "RESULT of tensor conv1.weight partition 3 step 12". Its tensor must be in the
// plan.
std::string describe(const plan::Plan& plan, const wire::Header& header);

// Checks that this is a frame of this job from `owner`, of a type that owners send.
absl::Status check_peer(const plan::Plan& plan, uint64_t job, uint32_t owner, const wire::Header& header);

// Checks that the frame's tensor and partition exist.
absl::Status check_exists(const plan::Plan& plan, uint32_t owner, const wire::Header& header);

// Checks that `owner` owns the frame's partition, and that the payload has the size for the frame's type.
absl::Status check_frame(const plan::Plan& plan, uint32_t owner, const wire::Header& header, const Buffer& payload);

}  // namespace gleaner::session
