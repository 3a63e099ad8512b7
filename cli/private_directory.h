// PrivateDirectory is a temporary directory that only its owner can read, for secrets. The destructor removes it.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace gleaner::cli {

class PrivateDirectory {
 public:
  // Creates a directory in $TMPDIR, or in /tmp if that is not set.
  static absl::StatusOr<PrivateDirectory> create();
  PrivateDirectory(PrivateDirectory&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  PrivateDirectory& operator=(PrivateDirectory&&) = delete;
  ~PrivateDirectory() { remove(); }

  const std::string& path() const { return path_; }
  // Removes the directory with its contents. May be called more than once.
  void remove();

 private:
  explicit PrivateDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace gleaner::cli
