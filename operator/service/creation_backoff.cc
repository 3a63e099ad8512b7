#include "operator/service/creation_backoff.h"

#include <algorithm>

#include "operator/reconcile/pauses.h"
#include "operator/reconcile/pods.h"
#include "operator/reconcile/refusal.h"

namespace gleaner::operation {

absl::Duration CreationBackoff::refuse(const api::TrainingJob& job, Kind kind, const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  Refusals& refusals = refusals_[Key(job.meta.key(), kind)];
  const std::string attempt = reconcile::session_of(job);
  if (refusals.attempt != attempt) refusals = {attempt, 0, {}, {}};
  const reconcile::Pauses& pauses = kind == Kind::kWorkers ? reconcile::kRefusalPauses : reconcile::kSummerPauses;
  const absl::Duration pause = reconcile::pause_after(pauses, ++refusals.count, job.meta.uid);
  refusals.due = env_.clock->since_start() + pause;
  refusals.why = why;
  return pause;
}

const CreationBackoff::Refusals* CreationBackoff::find(const api::TrainingJob& job, Kind kind) const {
  const auto found = refusals_.find(Key(job.meta.key(), kind));
  if (found == refusals_.end() || found->second.attempt != reconcile::session_of(job)) return nullptr;
  return &found->second;
}

absl::Duration CreationBackoff::left(const Refusals& refusals) const {
  return std::max(absl::ZeroDuration(), refusals.due - env_.clock->since_start());
}

absl::Duration CreationBackoff::pause(const api::TrainingJob& job, Kind kind) const {
  absl::MutexLock lock(&mutex_);
  const Refusals* const refusals = find(job, kind);
  return refusals == nullptr ? absl::ZeroDuration() : left(*refusals);
}

std::optional<reconcile::SummersRefused> CreationBackoff::summers_refused(const api::TrainingJob& job) const {
  absl::MutexLock lock(&mutex_);
  const Refusals* const refusals = find(job, Kind::kSummers);
  if (refusals == nullptr) return std::nullopt;
  const reconcile::EventNote event = reconcile::refusal_event("Pod", refusals->why);
  return reconcile::SummersRefused{event.reason, event.message, left(*refusals)};
}

void CreationBackoff::forget(const std::string& job_key, Kind kind) {
  absl::MutexLock lock(&mutex_);
  refusals_.erase(Key(job_key, kind));
}

void CreationBackoff::forget(const std::string& job_key) {
  for (const Kind kind : {Kind::kWorkers, Kind::kSummers}) forget(job_key, kind);
}

}  // namespace gleaner::operation
