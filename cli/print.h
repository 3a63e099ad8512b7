// Prints results of commands.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace gleaner::cli {

// Writes to standard output, and flushes it. Errors: Unavailable.
absl::Status print(const std::string& text);

}  // namespace gleaner::cli
