// Functions that read files with a secret on one line, such as the job's token.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gleaner {

// Returns the file's contents without surrounding white space. Errors are those of read_file(), and InvalidArgument if
// the file holds only white space.
absl::StatusOr<std::string> read_secret_file(const std::string& path);

}  // namespace gleaner
