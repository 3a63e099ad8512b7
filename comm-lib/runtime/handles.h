// The push_pulls that users hold handles of: opened by user threads, finished by the I/O thread, waited for by users.
// Thread safe. One lock per push_pull, none per partition.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace gleaner::runtime {

class Handles {
 public:
  uint64_t open() ABSL_LOCKS_EXCLUDED(mutex_);
  // The push_pull's outcome. A handle that is not open (its user gave up) is ignored.
  void finish(uint64_t handle, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // Finishes all that are unfinished with `status`, and ends every next_done().
  void close(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // InvalidArgument for a handle that is not open, from all three.
  absl::StatusOr<bool> done(uint64_t handle) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits and forgets the handle; its own status in `outcome`. DeadlineExceeded: still unfinished, and still open.
  absl::Status wait(uint64_t handle, absl::Duration timeout, absl::Status* outcome) ABSL_LOCKS_EXCLUDED(mutex_);
  // Tells each finished handle once. DeadlineExceeded: none in time; FailedPrecondition: closed and all are told.
  absl::StatusOr<uint64_t> next_done(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until nothing is unfinished; false when the timeout came first.
  bool wait_all(absl::Duration timeout) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct State {
    bool finished = false;
    absl::Status status;
  };
  void forget_told() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t unfinished_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::unordered_map<uint64_t, State> open_ ABSL_GUARDED_BY(mutex_);
  std::deque<uint64_t> untold_ ABSL_GUARDED_BY(mutex_);  // finished, in order; may hold handles waited for since
};

}  // namespace gleaner::runtime
