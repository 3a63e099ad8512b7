// Reads small files whole: tokens, certificates, lists of hosts.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gleaner {

// The contents of a file, or of a pipe until its end. `what` names the file's role in errors: "the token file". The
// status of an error has the code of the system's error, and says "can't read the token file 'PATH': Is a directory".
absl::StatusOr<std::string> read_file(const std::string& path, absl::string_view what);

}  // namespace gleaner
