// CreationBackoff says when the operator tries again to create a job's objects that the API server has refused: after
// kFirstPause, and after twice the pause with each refusal that follows, at most kLongestPause. Thread safe.
//
// The pauses hold whatever wakes the reconciler in between. A new attempt begins without a pause, so that a job whose
// template was corrected does not wait. A new leader knows of no refusal, and tries at once.
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/api/training_job.h"
#include "common/base/env.h"

namespace gleaner::operation {

class CreationBackoff {
 public:
  static constexpr absl::Duration kFirstPause = absl::Seconds(1);
  static constexpr absl::Duration kLongestPause = absl::Minutes(1);

  explicit CreationBackoff(const Env& env) : env_(env) {}

  // Counts a refusal and returns the pause before the next try.
  absl::Duration refuse(const api::TrainingJob& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the rest of the pause; zero: the operator may try now.
  absl::Duration pause(const api::TrainingJob& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // To be called when all objects are created, or when the job is gone.
  void forget(const std::string& job_key) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Refusals {
    std::string attempt;  // session_of(job)
    uint32_t count = 0;
    absl::Duration due;  // on the monotonic clock
  };

  const Env env_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Refusals> refusals_ ABSL_GUARDED_BY(mutex_);  // by job key
};

}  // namespace gleaner::operation
