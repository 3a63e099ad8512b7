// MemoryFile is a file in memory that holds a secret: the token of a job, for example. It is on no disk, and the kernel
// frees it when the process that made it ends, even by SIGKILL.
//
//   MemoryFile file = *MemoryFile::create("token", token);
//   file.path()   "/proc/4242/fd/7", where 4242 is this process
//
// A program that this process starts as the same user reads the file at this path. The path leads nowhere in another
// PID namespace, and the kernel refuses it to a process with fewer capabilities than this one.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/descriptor.h"

namespace gleaner::cli {

class MemoryFile {
 public:
  // Makes a file with `contents`, which nobody can change afterwards. `name` is shown to people, as in the links of
  // /proc/PID/fd.
  static absl::StatusOr<MemoryFile> create(const char* name, absl::string_view contents);

  // Returns a path at which processes of this user read the file from its start, as long as this process lives.
  std::string path() const;

 private:
  explicit MemoryFile(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

}  // namespace gleaner::cli
