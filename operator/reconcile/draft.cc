#include "operator/reconcile/draft.h"

#include <utility>

namespace gleaner::reconcile {
namespace {

bool has_ended(const api::TrainingJobStatus& status) { return status.phase == "Succeeded" || status.phase == "Failed"; }

// Returns whether the status has a fact that a later decision could not find again in the cluster's objects once the
// decision's other steps are carried out, or once a pod is deleted.
bool must_be_written_first(const api::TrainingJob& job, const Draft& draft, const api::TrainingJobStatus& status) {
  const bool is_new_attempt = status.attempt != job.status.attempt;
  const bool any_succeeded = status.succeeded_indexes != job.status.succeeded_indexes;
  return is_new_attempt || !draft.create_summers.empty() || any_succeeded || has_ended(status) != has_ended(job.status);
}

// Adds the steps that create pods, open their gates, write the plan and open the session. EnsureBootstrap comes once,
// before the first step that needs it.
void add_pods_and_session(const api::TrainingJob& job, Draft draft, std::vector<Step>& steps) {
  const bool starts_workers = !draft.create.empty();
  if (starts_workers) {
    steps.push_back({EnsureBootstrap{.starts_workers = true}});
    if (job.workers.replicas > 1) steps.push_back({CreateService{}});
    steps.push_back({CreateWorkers{std::move(draft.create)}});
  }
  const bool creates_summers = !draft.create_summers.empty();
  if (creates_summers) {
    if (!starts_workers) steps.push_back({EnsureBootstrap{}});
    steps.push_back({CreateSummers{std::move(draft.create_summers)}});
  }
  if (!draft.release.empty()) steps.push_back({ReleaseWorkers{std::move(draft.release)}});
  if (draft.plan.has_value()) steps.push_back({WritePlan{*std::move(draft.plan)}});
  if (!draft.session.has_value()) return;
  if (!starts_workers && !creates_summers) steps.push_back({EnsureBootstrap{}});
  steps.push_back({OpenSession{*std::move(draft.session)}});
  steps.push_back({std::move(draft.tell)});
}

}  // namespace

Decision finish(const api::TrainingJob& job, Draft draft, StatusUpdate update) {
  using Order = Step::Order;
  api::TrainingJobStatus status = std::move(update.status);
  status.phase = phase_of(status.conditions);
  const bool status_first = must_be_written_first(job, draft, status);
  // The new pods of a new job cause the next decision.
  const bool is_optional = !job.status.start_time.has_value() && !draft.create.empty();
  std::vector<PodRemoval> remove = std::move(draft.remove);
  const bool remove_job = draft.remove_job;
  std::vector<Step> steps;
  if (!draft.confirm_missing.empty())
    steps.push_back({ConfirmMissing{std::move(draft.confirm_missing)}, Order::kFirst});
  if (status_first) steps.push_back({WriteStatus{status}, Order::kFirst});
  if (draft.end_session.has_value()) steps.push_back({EndSession{*std::move(draft.end_session)}});
  add_pods_and_session(job, std::move(draft), steps);
  if (!remove.empty()) steps.push_back({RemovePods{std::move(remove)}, Order::kAlways});
  if (!status_first) steps.push_back({WriteStatus{std::move(status), is_optional}, Order::kAlways});
  if (!update.events().empty()) steps.push_back({RecordEvents{update.events()}});
  if (remove_job) steps.push_back({RemoveJob{}});
  return {std::move(steps), update.requeue()};
}

}  // namespace gleaner::reconcile
