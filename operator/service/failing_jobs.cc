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
}

std::optional<reconcile::Failing> FailingJobs::find(const std::string& job_key) const {
  absl::MutexLock lock(&mutex_);
  const auto found = failures_.find(job_key);
  if (found == failures_.end()) return std::nullopt;
  return reconcile::Failing{env_.clock->since_start() - found->second.since, found->second.why};
}

}  // namespace gleaner::operation
