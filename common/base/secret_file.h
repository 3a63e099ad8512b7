// Files that hold a secret on one line: the job's token.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gleaner {

// The file's contents without surrounding white space. Errors as of read_file();
// InvalidArgument when it holds nothing.
absl::StatusOr<std::string> read_secret_file(const std::string& path);

}  // namespace gleaner
