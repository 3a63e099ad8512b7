// Reads small files as a whole, such as tokens and certificates.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gleaner {

// Returns the contents of a file, or of a pipe until its end. `role` describes the file in error messages: "the
// token file". An error has the status code of the system's error, and a message such as "can't read the token file
// 'PATH': Is a directory".
absl::StatusOr<std::string> read_file(const std::string& path, absl::string_view role);

}  // namespace gleaner
