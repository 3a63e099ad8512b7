// CreationBackoff remembers the objects of jobs that the API server has refused, and says when the operator tries again
// to create them: after the pauses of operator/reconcile/pauses.h. Thread safe.
//
// The pauses hold whatever wakes the reconciler in between. A new attempt begins without a pause, so that a job whose
// template was corrected does not wait. A new leader knows of no refusal, and tries at once.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/api/training_job.h"
#include "common/base/env.h"
#include "operator/reconcile/observation.h"

namespace gleaner::operation {

class CreationBackoff {
 public:
  // The workers, with the objects that they need, or the summers.
  enum class Kind { kWorkers, kSummers };

  explicit CreationBackoff(const Env& env) : env_(env) {}

  // Counts a refusal and returns the pause before the next try.
  absl::Duration refuse(const api::TrainingJob& job, Kind kind, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the rest of the pause; zero: the operator may try now.
  absl::Duration pause(const api::TrainingJob& job, Kind kind) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the last refusal of the attempt's summers; nullopt: there is none, or summers were created since.
  std::optional<reconcile::SummersRefused> summers_refused(const api::TrainingJob& job) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // To be called when all objects of this kind are created.
  void forget(const std::string& job_key, Kind kind) ABSL_LOCKS_EXCLUDED(mutex_);
  // To be called when the job is gone.
  void forget(const std::string& job_key);

 private:
  struct Refusals {
    std::string attempt;  // session_of(job)
    uint32_t count = 0;
    absl::Duration due;  // on the monotonic clock
    absl::Status why;    // of the last refusal
  };
  using Key = std::pair<std::string, Kind>;  // the job's key

  const Refusals* find(const api::TrainingJob& job, Kind kind) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration left(const Refusals& refusals) const;

  const Env env_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<Key, Refusals> refusals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gleaner::operation
