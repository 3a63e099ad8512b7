// Functions that make and read the token of a job, which members show to its coordinator.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/base/env.h"

namespace gleaner::cli {

// Returns 32 random bytes in hexadecimal.
absl::StatusOr<std::string> make_token(Random& random);

// Returns the token in the file at `path`. If there is no such file, makes one that only its owner can read. If several
// processes call this at the same time, one of them makes the file and all return the same token.
absl::StatusOr<std::string> read_or_make_token_file(Random& random, const std::string& path);

}  // namespace gleaner::cli
