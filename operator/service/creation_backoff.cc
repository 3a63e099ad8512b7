#include "operator/service/creation_backoff.h"

#include <algorithm>

#include "operator/reconcile/pods.h"

namespace gleaner::operation {
namespace {

constexpr uint32_t kMaxDoublings = 16;

}  // namespace

absl::Duration CreationBackoff::refuse(const api::TrainingJob& job) {
  absl::MutexLock lock(&mutex_);
  Refusals& refusals = refusals_[job.meta.key()];
  const std::string attempt = reconcile::session_of(job);
  if (refusals.attempt != attempt) refusals = {attempt, 0, {}};
  const absl::Duration pause =
      std::min(kLongestPause, kFirstPause * (uint32_t{1} << std::min(refusals.count, kMaxDoublings)));
  ++refusals.count;
  refusals.due = env_.clock->since_start() + pause;
  return pause;
}

absl::Duration CreationBackoff::pause(const api::TrainingJob& job) const {
  absl::MutexLock lock(&mutex_);
  const auto found = refusals_.find(job.meta.key());
  if (found == refusals_.end() || found->second.attempt != reconcile::session_of(job)) return absl::ZeroDuration();
  return std::max(absl::ZeroDuration(), found->second.due - env_.clock->since_start());
}

void CreationBackoff::forget(const std::string& job_key) {
  absl::MutexLock lock(&mutex_);
  refusals_.erase(job_key);
}

}  // namespace gleaner::operation
