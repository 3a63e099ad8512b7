#include "operator/service/job_reconciler.h"

#include <utility>

#include "operator/reconcile/summer_placement.h"
#include "operator/reconcile/workers.h"

namespace gleaner::operation {
namespace {

constexpr absl::Duration kSoon = absl::Seconds(1);

}  // namespace

JobReconciler::JobReconciler(Parts parts)
    : parts_(std::move(parts)),
      sessions_(parts_.env, parts_.sessions),
      reports_(parts_.env, parts_.client),
      backoff_(parts_.env),
      failing_(parts_.env),
      executor_({parts_.env, parts_.client, parts_.identities, sessions_, reports_, backoff_, parts_.events,
                 parts_.metrics}) {}

kube::Result JobReconciler::reconcile(const std::string& key) {
  const auto job = parts_.cluster.job(key);
  if (job == nullptr) return forget(key);
  const reconcile::Observation observation = observe(*job);
  const reconcile::Decision decision = reconcile::decide(observation, parts_.settings);
  const Outcome outcome = executor_.carry_out(observation, decision);
  // NotFound is no failure if the job was deleted meanwhile.
  const bool is_gone = absl::IsNotFound(outcome.failure) && parts_.cluster.job(key) == nullptr;
  failing_.note(key, is_gone ? absl::OkStatus() : outcome.failure);
  parts_.metrics.update(*job, outcome.status, observation.session.has_value() ? &*observation.session : nullptr);
  const std::optional<reconcile::Failing> failing = failing_.find(key);
  parts_.metrics.set_failing(key, failing.has_value() ? failing->lasting : absl::ZeroDuration());
  if (!outcome.failure.ok() && !is_gone) return kube::Retry{outcome.failure};
  if (observation.failing.has_value()) return kube::RequeueAfter{kSoon};  // the condition ReconcileFailing may end
  if (outcome.requeue_after.has_value()) return kube::RequeueAfter{*outcome.requeue_after};
  return kube::Done{};
}

// Drops the state that this process keeps of a job that is gone.
kube::Result JobReconciler::forget(const std::string& key) {
  end_session(key, "the job is gone");
  parts_.metrics.remove(key);
  backoff_.forget(key);
  failing_.note(key, absl::OkStatus());
  return kube::Done{};
}

reconcile::Observation JobReconciler::observe(const api::TrainingJob& job) {
  if (sessions_.is_outdated(job)) end_session(job.meta.key(), "a new attempt begins");
  reconcile::Observation observation = parts_.cluster.observe(job);
  CoordinatedSessions::State session = sessions_.observe(job);
  observation.session = std::move(session.state);
  observation.session_ended_for = session.ended_for;
  observation.creation_pause = backoff_.pause(job, CreationBackoff::Kind::kWorkers);
  observation.summers_refused = backoff_.summers_refused(job);
  observation.failing = failing_.find(job.meta.key());
  observation.scaling = parts_.scaling_request(job.meta.key());
  if (reconcile::needs_candidates(observation)) {
    observation.candidates = parts_.cluster.candidates(job, reconcile::Workers(observation).nodes());
  }
  return observation;
}

void JobReconciler::end_session(const std::string& key, const std::string& why) {
  sessions_.end(key, why);
  reports_.forget(key);
}

}  // namespace gleaner::operation
