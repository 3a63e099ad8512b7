// FailingJobs remembers since when the reconciliations of each job fail, and why. A new leader begins without it.
// Thread safe.
#pragma once

#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/env.h"
#include "operator/reconcile/observation.h"

namespace gleaner::operation {

class FailingJobs {
 public:
  explicit FailingJobs(const Env& env) : env_(env) {}

  // To be called after each reconciliation.
  void note(const std::string& job_key, const absl::Status& outcome) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns nullopt if the last reconciliation did not fail.
  std::optional<reconcile::Failing> find(const std::string& job_key) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Failure {
    absl::Duration since;  // on the monotonic clock
    std::string why;
    bool is_outage = false;
  };

  const Env env_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Failure> failures_ ABSL_GUARDED_BY(mutex_);  // by job key
};

}  // namespace gleaner::operation
