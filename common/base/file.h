// Reads small files as a whole, such as tokens and certificates; writes short texts.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gleaner {

// Returns the contents of a file, or of a pipe until its end. `role` describes the file in error messages: "the
// token file". An error has the status code of the system's error, and a message such as "can't read the token file
// 'PATH': Is a directory".
absl::StatusOr<std::string> read_file(const std::string& path, absl::string_view role);

// Writes `text` to a descriptor, unless this would wait for the reader of a pipe or a terminal; then, or if the
// descriptor can't be written, the text is lost. A signal handler may call this.
void write_if_ready(int descriptor, absl::string_view text);

}  // namespace gleaner
