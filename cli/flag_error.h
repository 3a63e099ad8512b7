// The error in the value of a flag.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace gleaner::cli {

// Returns InvalidArgument. `flag` is as the user writes it: "--topology".
inline absl::Status flag_error(absl::string_view flag, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", message));
}

}  // namespace gleaner::cli
