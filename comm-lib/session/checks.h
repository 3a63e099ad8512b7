// Checks requests, and frames from owners, against the plan. Errors name the tensor, the owner and the expected value.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "comm-lib/session/session.h"
#include "common/base/buffer.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"

namespace gleaner::session {

// "RESULT of tensor conv1.weight partition 3 step 12".
std::string describe(const plan::Plan& plan, const wire::Header& header);

// How many partitions it is for, once checked.
uint32_t partitions_of(const plan::Plan& plan, const Request& request);

// That the tensor and the partitions exist, have this size and this op, and that the output does not overlap the input
// in part.
absl::Status check_request(const plan::Plan& plan, const Request& request);

// That this is a frame of this job from `owner`, of a type that owners send.
absl::Status check_peer(const plan::Plan& plan, uint64_t job, uint32_t owner, const wire::Header& header);

// That it is about a partition that exists.
absl::Status check_exists(const plan::Plan& plan, uint32_t owner, const wire::Header& header);

// That `owner` owns that partition, and that the payload has the size that goes with it.
absl::Status check_frame(const plan::Plan& plan, uint32_t owner, const wire::Header& header, const Buffer& payload);

}  // namespace gleaner::session
