// Short names of the codes with which the protocol cores refuse frames, plans and pieces.
#pragma once

#include "absl/status/status.h"

namespace gleaner::testing {

inline constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
inline constexpr auto kWrongTime = absl::StatusCode::kFailedPrecondition;

}  // namespace gleaner::testing
