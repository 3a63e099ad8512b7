// Files that a command writes when all its work is done: what would keep it from that is found out before.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace gleaner::cli {

// Whether a file can be written there, as a whole beside an old one. Unavailable names `flag` and says why not. Leaves
// nothing behind. An empty path is none, and OK.
absl::Status check_output_file(const std::string& flag, const std::string& path);

}  // namespace gleaner::cli
