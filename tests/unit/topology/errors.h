// Functions for tests of error messages.
#pragma once

#include <gmock/gmock.h>

#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_replace.h"

namespace gleaner::topology {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Returns the message of an error, which must be InvalidArgument; empty: there is none.
template <typename T>
std::string error_of(const absl::StatusOr<T>& made) {
  if (made.ok()) return "";
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(made.status().message());
}

// Returns `text` with `replacement` in place of `part`, which `text` must contain.
inline std::string with_replaced(const std::string& text, const std::string& part, absl::string_view replacement) {
  EXPECT_THAT(text, testing::HasSubstr(part));
  return absl::StrReplaceAll(text, {{part, replacement}});
}

}  // namespace gleaner::topology
