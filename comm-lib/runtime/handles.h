// Handles holds the handles of requests: user threads open handles and wait for them, the I/O thread finishes them.
// Thread safe. Takes one lock per request, none per partition.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "comm-lib/runtime/rank_device.h"

namespace gleaner::runtime {

class Handles {
 public:
  struct Ended {
    absl::Status outcome;
    std::unique_ptr<DeviceMarks> marks;  // as passed to open()
  };

  // Returns a new handle. Handles count up from 1. `marks`: of a request in the memory of a GPU, else null; they stay
  // until wait().
  uint64_t open(std::unique_ptr<DeviceMarks> marks = nullptr) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets the request's outcome. Ignored if the handle is not open or is finished.
  void finish(uint64_t handle, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // Finishes all unfinished handles with `status`. From then on next_done() does not wait.
  void close(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // done() and wait() return InvalidArgument for a handle that is not open.
  absl::StatusOr<bool> done(uint64_t handle) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until the handle is finished, and closes it. DeadlineExceeded: the handle is unfinished and stays open.
  absl::StatusOr<Ended> wait(uint64_t handle, absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  // Opens a handle again that wait() has closed.
  void put_back(uint64_t handle, Ended ended) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the next finished handle. Returns each handle at most once, and none that wait() has closed.
  // DeadlineExceeded: no handle was finished in time. FailedPrecondition: close() was called, and all handles were
  // returned.
  absl::StatusOr<uint64_t> next_done(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until no handle is unfinished. Returns false if `timeout` passes first.
  bool wait_all(absl::Duration timeout) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct State {
    bool finished = false;
    absl::Status status;
    std::unique_ptr<DeviceMarks> marks;
  };
  void drop_waited_for() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t unfinished_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::unordered_map<uint64_t, State> open_ ABSL_GUARDED_BY(mutex_);
  // Finished handles that next_done() has not returned, in order. wait() may have closed some of them meanwhile.
  std::deque<uint64_t> unreported_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gleaner::runtime
