// Reads and writes small files as a whole, such as tokens and certificates; writes short texts.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gleaner {

// Returns the contents of a file, or of a pipe until its end. `role` describes the file in error messages: "the
// token file". An error has the status code of the system's error, and a message such as "can't read the token file
// 'PATH': Is a directory".
absl::StatusOr<std::string> read_file(const std::string& path, absl::string_view role);

struct ReplaceOptions {
  mode_t mode = 0644;     // of a new file, less the process's umask
  std::string temporary;  // the path of the temporary file; empty for PATH.PID.tmp
};

// Writes `text` to a temporary file beside `path`, syncs it and renames it to `path`, so that a reader sees either all
// of the earlier file or all of the new one. If this fails, the earlier file is unchanged and no temporary file is
// left. A link, a device or a pipe at `path` is not replaced but written to. `role` is as for read_file(). Errors:
// Unavailable, such as "can't write the summary 'PATH': No space left on device".
absl::Status replace_file(const std::string& path, absl::string_view text, absl::string_view role,
                          const ReplaceOptions& options = {});

// Writes `text` to a descriptor, unless this would wait for the reader of a pipe or a terminal; then, or if the
// descriptor can't be written, the text is lost. A signal handler may call this.
void write_if_ready(int descriptor, absl::string_view text);

}  // namespace gleaner
