// MemoryFile is a file in memory for a secret. It is on no disk, and is gone when the process that made it ends,
// however that ends.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/descriptor.h"

namespace gleaner::cli {

class MemoryFile {
 public:
  // Makes a file with `contents`, which can't change any more. `name` is for people, in /proc.
  static absl::StatusOr<MemoryFile> create(const char* name, absl::string_view contents);

  // Returns a path at which processes of this user read the file from its start while this process lives, but not in
  // another namespace of processes, nor with fewer capabilities than this process.
  std::string path() const;

 private:
  explicit MemoryFile(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

}  // namespace gleaner::cli
