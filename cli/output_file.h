// Checks, before a command starts its work, that the command will be able to write its output file at the end.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace gleaner::cli {

// Returns OK if the file at `path` can be written, either in place or by renaming a temporary file beside it, and if
// `path` is empty (the user asked for no file). Leaves no file behind. Errors: Unavailable, which names `flag` and the
// reason.
absl::Status check_writable(const std::string& flag, const std::string& path);

}  // namespace gleaner::cli
