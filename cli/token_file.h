// Functions that make and read the token of a job, which members show to its coordinator.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/base/env.h"

namespace gleaner::cli {

// Returns 32 random bytes in hexadecimal.
absl::StatusOr<std::string> make_token(Random& random);

// Returns the token in the file at `path`. If there is no such file, makes one that only its owner can read, with the
// token that `make` returns. If several processes call this at the same time, one of them makes the file and all return
// the same token. An empty file, which no two processes may share, gets the token in place.
absl::StatusOr<std::string> read_or_make_token_file(const std::string& path,
                                                    absl::FunctionRef<absl::StatusOr<std::string>()> make);
// As above, with make_token().
absl::StatusOr<std::string> read_or_make_token_file(Random& random, const std::string& path);

}  // namespace gleaner::cli
