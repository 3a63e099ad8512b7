// The bearer token of every request. A token file is looked at each time (one stat), and read when it has changed.
#pragma once

#include <sys/stat.h>

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace gleaner::kube {

class TokenSource {
 public:
  TokenSource(std::string token, std::string token_file) : token_(std::move(token)), file_(std::move(token_file)) {}

  // Empty: there is none. Thread safe. When the file can't be read just now, the last token read.
  absl::StatusOr<std::string> get() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  std::string token_ ABSL_GUARDED_BY(mutex_);
  const std::string file_;
  struct stat read_at_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace gleaner::kube
