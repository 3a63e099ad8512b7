#include "operator/reconcile/draft.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gleaner::reconcile {
namespace {

bool is_suspended(const api::TrainingJobStatus& status) { return api::holds(status.conditions, "Suspended"); }

bool has_ended(const api::TrainingJobStatus& status) { return status.phase == "Succeeded" || status.phase == "Failed"; }

// Returns whether the status has a fact that a later decision could not find again in the cluster's objects once the
// decision's other steps are carried out, or once a pod is deleted.
bool must_be_written_first(const api::TrainingJob& job, const Draft& draft, const api::TrainingJobStatus& status) {
  const bool is_new_attempt = status.attempt != job.status.attempt;
  const bool any_succeeded = status.succeeded_indexes != job.status.succeeded_indexes;
  return is_new_attempt || status.communication.rank_map != job.status.communication.rank_map ||
         !draft.create_summers.pods.empty() || any_succeeded || has_ended(status) != has_ended(job.status) ||
         is_suspended(status) != is_suspended(job.status);
}

// StepList holds the steps of a decision in order.
class StepList {
 public:
  // Adds a step, which needs all barriers so far and `needs`. Returns its place.
  size_t add(Action action, std::vector<size_t> needs = {}) {
    needs.insert(needs.begin(), barriers_.begin(), barriers_.end());
    steps_.push_back({std::move(action), std::move(needs)});
    return steps_.size() - 1;
  }
  // Adds a step that all later steps need.
  void add_barrier(Action action) { barriers_.push_back(add(std::move(action))); }

  std::vector<Step> take() { return std::move(steps_); }

 private:
  std::vector<Step> steps_;
  std::vector<size_t> barriers_;
};

// Adds the steps that create pods, open their gates, write the plan and open the session. EnsureBootstrap comes once,
// before the first step that needs it.
void add_pods_and_session(const api::TrainingJob& job, Draft draft, StepList& steps) {
  const bool starts_workers = !draft.create.empty();
  std::vector<size_t> bootstrap;  // the place of EnsureBootstrap
  if (starts_workers || !draft.create_summers.pods.empty() || draft.session.has_value()) {
    bootstrap.push_back(steps.add(EnsureBootstrap{.starts_workers = starts_workers}));
  }
  if (starts_workers) {
    std::vector<size_t> needs = bootstrap;
    if (job.workers.replicas > 1) needs.push_back(steps.add(CreateService{}));
    steps.add(CreateWorkers{std::move(draft.create)}, std::move(needs));
  }
  if (!draft.create_summers.pods.empty()) steps.add(std::move(draft.create_summers), bootstrap);
  if (!draft.release.empty()) steps.add(ReleaseWorkers{std::move(draft.release)});
  std::vector<size_t> ranks;  // the place of CreateRankMap
  if (draft.rank_map.has_value()) ranks.push_back(steps.add(CreateRankMap{*std::move(draft.rank_map)}));
  if (!draft.rank_labels.empty()) steps.add(LabelWorkers{std::move(draft.rank_labels)}, std::move(ranks));
  std::vector<size_t> begin;  // the place of the plan without which the session must not begin
  if (draft.plan.has_value()) {
    const size_t written = steps.add(WritePlan{*std::move(draft.plan)});
    if (draft.plan_begins) begin.push_back(written);
  }
  if (!draft.session.has_value()) return;
  const size_t open = steps.add(OpenSession{*std::move(draft.session)}, std::move(begin));
  steps.add(std::move(draft.tell), {open});
}

// Adds the step that records the urgent Events, or the others.
void add_events(const std::vector<EventNote>& events, bool urgent, std::vector<size_t> needs, StepList& steps) {
  RecordEvents record;
  std::copy_if(events.begin(), events.end(), std::back_inserter(record.events),
               [urgent](const EventNote& event) { return event.urgent == urgent; });
  if (!record.events.empty()) steps.add(std::move(record), std::move(needs));
}

}  // namespace

Decision finish(const api::TrainingJob& job, Draft draft, StatusUpdate update) {
  api::TrainingJobStatus status = std::move(update.status);
  status.phase = phase_of(status.conditions);
  const bool status_first = must_be_written_first(job, draft, status);
  // The new pods of a new job cause the next decision.
  const bool is_optional = !job.status.start_time.has_value() && !draft.create.empty();
  std::vector<PodRemoval> remove = std::move(draft.remove);
  const bool remove_job = draft.remove_job;
  StepList steps;
  add_events(update.events(), true, {}, steps);
  if (!draft.confirm_missing.empty()) steps.add_barrier(ConfirmMissing{std::move(draft.confirm_missing)});
  if (status_first) steps.add_barrier(WriteStatus{status});
  if (draft.end_session.has_value()) steps.add(EndSession{*std::move(draft.end_session)});
  add_pods_and_session(job, std::move(draft), steps);
  if (!remove.empty()) steps.add(RemovePods{std::move(remove)});
  std::vector<size_t> written;
  if (!status_first) written.push_back(steps.add(WriteStatus{std::move(status), is_optional}));
  // Without the status the next decision makes the same change, and would record the same Events again.
  add_events(update.events(), false, std::move(written), steps);
  if (remove_job) steps.add(RemoveJob{});
  return {steps.take(), update.requeue()};
}

}  // namespace gleaner::reconcile
