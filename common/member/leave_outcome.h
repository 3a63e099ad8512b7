// LeaveOutcome lets one thread wait until another reports how its request to leave the job has ended. Thread safe.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace gleaner::member {

class LeaveOutcome {
 public:
  // Begins another request to leave. Has no effect once the member has left.
  void reset() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    stays_ = false;
  }

  void set_left() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    left_ = true;
  }

  // Reports that the member stays for now: a plan was committed before the coordinator received the request.
  void set_stays() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    stays_ = true;
  }

  // Waits until the request has ended. Returns false if the member stays.
  bool await() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return left_ || stays_; };
    mutex_.Await(absl::Condition(&ended));
    return !stays_;
  }

 private:
  absl::Mutex mutex_;
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
  bool stays_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gleaner::member
