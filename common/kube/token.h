// TokenSource provides the bearer token for each request. It checks a token file at every call (one stat), and reads
// the file again when it has changed.
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

  // Returns the token; empty if there is none. If the file can't be read now, returns the last token that was read.
  // Thread safe.
  absl::StatusOr<std::string> get() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  std::string token_ ABSL_GUARDED_BY(mutex_);
  const std::string file_;
  struct stat read_at_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace gleaner::kube
