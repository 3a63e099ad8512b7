#include "operator/service/failing_jobs.h"

namespace gleaner::operation {

void FailingJobs::note(const std::string& job_key, const absl::Status& outcome) {
  absl::MutexLock lock(&mutex_);
  if (outcome.ok()) {
    failures_.erase(job_key);
    return;
  }
  const auto [entry, is_first] = failures_.try_emplace(job_key);
  if (is_first) entry->second.since = env_.clock->since_start();
  entry->second.why = std::string(outcome.message());
  entry->second.is_outage = absl::IsUnavailable(outcome);
}

std::optional<reconcile::Failing> FailingJobs::find(const std::string& job_key) const {
  absl::MutexLock lock(&mutex_);
  const auto found = failures_.find(job_key);
  if (found == failures_.end()) return std::nullopt;
  const Failure& failure = found->second;
  return reconcile::Failing{env_.clock->since_start() - failure.since, failure.why, failure.is_outage};
}

}  // namespace gleaner::operation
