// The names of tensors that carry a broadcast. Broadcasts belong to no step.
#pragma once

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace gleaner::plan {

inline constexpr absl::string_view kBroadcastPrefix = "broadcast/";

inline bool is_broadcast(absl::string_view tensor) { return absl::StartsWith(tensor, kBroadcastPrefix); }

}  // namespace gleaner::plan
