// A directory that nobody else can look into, for a secret that lasts as long as the program.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace gleaner::cli {

class PrivateDirectory {
 public:
  // In $TMPDIR, or /tmp.
  static absl::StatusOr<PrivateDirectory> create();
  PrivateDirectory(PrivateDirectory&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  PrivateDirectory& operator=(PrivateDirectory&&) = delete;
  ~PrivateDirectory() { remove(); }

  const std::string& path() const { return path_; }
  // With all that is in it; twice is harmless.
  void remove();

 private:
  explicit PrivateDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace gleaner::cli
