// The job's token: made where there is none yet.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/base/env.h"

namespace gleaner::cli {

// 32 random bytes in hexadecimal.
absl::StatusOr<std::string> make_token(Random& random);

// The token in the file at `path`, which is made, readable by its owner only, if it is not there. Of several processes
// that do so at the same time one makes it, and all return the same token.
absl::StatusOr<std::string> read_or_make_token_file(Random& random, const std::string& path);

}  // namespace gleaner::cli
