// Functions that convert recordings to the messages of coordinator.proto and back. Pure.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "common/plan/plan.h"
#include "common/proto/coordinator.pb.h"
#include "common/trace/event.h"

namespace gleaner::member {

// Cuts a recording into pieces of limited size. The last piece is marked.
std::vector<v1::Traced> encode(uint64_t recording, const trace::Recording& contents);
// Appends a piece to `contents`. InvalidArgument: the piece is malformed.
absl::Status append(const v1::Traced& piece, trace::Recording& contents);

}  // namespace gleaner::member
