#include "operator/reconcile/decide.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operator/reconcile/attempt_session.h"
#include "operator/reconcile/bandwidth.h"
#include "operator/reconcile/draft.h"
#include "operator/reconcile/failure.h"
#include "operator/reconcile/gang_start.h"
#include "operator/reconcile/job_end.h"
#include "operator/reconcile/job_network.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/plan_object.h"
#include "operator/reconcile/progress.h"
#include "operator/reconcile/rank_assignment.h"
#include "operator/reconcile/status_update.h"
#include "operator/reconcile/strategy.h"
#include "operator/reconcile/summer_placement.h"
#include "operator/reconcile/summer_scaling.h"
#include "operator/reconcile/summers.h"
#include "operator/reconcile/workers.h"

namespace gleaner::reconcile {
namespace {

constexpr char kReconcileFailing[] = "ReconcileFailing";
constexpr char kSummersRefused[] = "SummersRefused";

template <typename T>
void append(std::vector<T>& all, std::vector<T> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// Tells people that the operator can't carry its decisions out, and when it can again.
void report_failing(const Observation& observation, StatusUpdate& update) {
  if (!observation.failing.has_value()) {
    if (update.holds(kReconcileFailing)) update.set_condition(kReconcileFailing, false, "Reconciled", "");
    return;
  }
  const Failing& failing = *observation.failing;
  if (failing.lasting < kFailingPatience) {
    update.requeue_after(kFailingPatience - failing.lasting);
    return;
  }
  // After an outage the next decision is likely to be carried out. The text stays that of the first failure: texts may
  // differ each time, and a status that is written causes the next decision.
  if (failing.is_outage || update.holds(kReconcileFailing)) return;
  update.add_urgent_event(kReconcileFailing, absl::StrCat("the operator tries again: it ", failing.why));
  update.set_condition(kReconcileFailing, true, "StepFails", failing.why);
}

// Returns the job's status with the figures that follow from the objects alone: the numbers of workers and summers.
StatusUpdate begin_update(const Observation& observation, const Workers& workers) {
  const api::TrainingJob& job = observation.job;
  StatusUpdate update(job, observation.now);
  api::TrainingJobStatus& status = update.status;
  status.observed_generation = job.meta.generation;
  status.workers_wanted = job.workers.replicas;
  status.selector = absl::StrCat(api::kJobLabel, "=", job.meta.name, ",", api::kRoleLabel, "=", kWorker);
  status.workers_ready = status.workers_failed = status.summers_ready = 0;
  status.succeeded_indexes = workers.succeeded();
  status.workers_succeeded = static_cast<uint32_t>(status.succeeded_indexes.size());
  for (const PodView* pod : workers.pods()) {
    if (pod == nullptr) continue;
    status.workers_ready += pod->phase == PodView::Phase::kRunning && !pod->deletion.has_value();
    status.workers_failed += pod->phase == PodView::Phase::kFailed;
  }
  for (const PodView* pod : summers_of_attempt(observation)) {
    status.summers_ready += pod->phase == PodView::Phase::kRunning && !pod->deletion.has_value();
  }
  report_failing(observation, update);
  return update;
}

// Tells people that the API server refuses summers, until it admits one or the job wants no more.
void report_refused_summers(const Observation& observation, StatusUpdate& update) {
  const auto& scaling = observation.scaling;
  const bool wants_more =
      wants_summers(observation.job) && (!scaling.has_value() || scaling->verdict.wanted > update.status.summers.had);
  const std::vector<const PodView*> summers = summers_of_attempt(observation);
  if (const auto& refused = observation.summers_refused; refused.has_value() && wants_more) {
    update.set_condition(kSummersRefused, true, refused->reason, refused->why);
    if (refused->pause > absl::ZeroDuration()) update.requeue_after(refused->pause);
  } else if (!update.holds(kSummersRefused)) {
    return;
  } else if (!wants_more) {
    update.set_condition(kSummersRefused, false, "NoMoreWanted", "");
  } else if (std::any_of(summers.begin(), summers.end(), [](const PodView* pod) { return pod->alive(); })) {
    update.set_condition(kSummersRefused, false, "SummersAdmitted", "");
  }
}

Decision finish(const Observation& observation, EndDecision end, Draft draft = {}) {
  draft.end_session = std::move(end.end_session);
  draft.remove = std::move(end.remove);
  draft.remove_job = end.remove_job;
  return finish(observation.job, std::move(draft), std::move(end.update));
}

Decision decide_success(const Observation& observation, const Workers& workers, StatusUpdate update) {
  EndDecision end = JobEnd(observation).succeed(std::move(update));
  if (!observation.plan.has_value()) return finish(observation, std::move(end));
  ProgressDecision progress = Progress(observation, workers).decide(std::move(end.update));
  end.update = std::move(progress.update);
  Draft draft;
  draft.plan = std::move(progress.plan);
  return finish(observation, std::move(end), std::move(draft));
}

Decision refuse_strategy(const Observation& observation, StatusUpdate update, const absl::Status& why) {
  return finish(observation,
                JobEnd(observation).fail(std::move(update), "InvalidStrategy", std::string(why.message())));
}

Decision decide_failure(const Observation& observation, const Workers& workers, StatusUpdate update, Failure failure) {
  Draft draft;
  draft.confirm_missing = std::move(failure.confirm_missing);
  if (failure.kind != Failure::Kind::kUndecided) {
    return finish(observation, JobEnd(observation).restart(std::move(update), failure), std::move(draft));
  }
  const AttemptSession session(observation, workers);
  absl::StatusOr<coordinator::Options> options = session.options();
  if (!options.ok()) return refuse_strategy(observation, std::move(update), options.status());
  draft.session = *std::move(options);
  draft.tell.ended = session.ended_workers();
  update.requeue_after(kSoon);
  return finish(observation.job, std::move(draft), std::move(update));
}

// Decides about an attempt whose workers are all bound to nodes. `draft` has the actions of its start.
Decision decide_run(const Observation& observation, const Workers& workers, const PodSettings& settings, Draft draft,
                    StatusUpdate update) {
  RankDecision ranks = assign_ranks(observation, workers, std::move(update));
  update = std::move(ranks.update);
  draft.rank_map = std::move(ranks.object);
  draft.rank_labels = std::move(ranks.labels);
  if (ranks.is_new) return finish(observation.job, std::move(draft), std::move(update));
  report_moved_machines(observation, workers, update);
  PlacementDecision placement = SummerPlacement(observation, workers, settings).decide(std::move(update));
  update = std::move(placement.update);
  draft.create_summers = std::move(placement.create);
  append(draft.remove, std::move(placement.remove));
  if (!placement.settled) return finish(observation.job, std::move(draft), std::move(update));
  explain_no_summers(observation.job, update.status.summers);
  report_refused_summers(observation, update);
  const AttemptSession session(observation, workers);
  absl::StatusOr<coordinator::Options> options = session.options();
  if (!options.ok()) return refuse_strategy(observation, std::move(update), options.status());
  draft.session = *std::move(options);
  draft.tell.ended = session.ended_workers();
  draft.tell.summer_groups = groups_of_summers(observation);
  if (wants_summers(observation.job) && has_begun(observation)) {
    ScalingDecision scaling = SummerScaling(observation, settings).decide(std::move(update));
    update = std::move(scaling.update);
    draft.create_summers = std::move(scaling.create);
    append(draft.remove, std::move(scaling.remove));
    append(draft.tell.ended, std::move(scaling.ended));
    draft.tell.release = std::move(scaling.release);
    draft.tell.bandwidths = changed_bandwidths(observation, workers.pods());
  } else if (const auto loss = session.early_loss(); loss.has_value()) {
    draft.tell.summers = loss->summers;
    update.requeue_after(kSoon);
  }
  ProgressDecision progress = Progress(observation, workers).decide(std::move(update));
  draft.plan = std::move(progress.plan);
  draft.plan_begins = !is_settled(observation);
  return finish(observation.job, std::move(draft), std::move(progress.update));
}

Decision decide_attempt(const Observation& observation, const Workers& workers, const PodSettings& settings,
                        StatusUpdate update) {
  StartDecision start = GangStart(observation, workers, settings).decide(std::move(update));
  const JobEnd end(observation);
  if (start.invalid_template.has_value()) {
    return finish(observation, end.fail(std::move(start.update), "InvalidTemplate", *start.invalid_template));
  }
  if (start.late.has_value()) {
    return finish(observation, end.release_gang(std::move(start.update), *start.late));
  }
  if (!start.create.empty()) {
    const absl::Status valid = check_strategy(observation.job);
    if (!valid.ok()) return refuse_strategy(observation, std::move(start.update), valid);
  }
  Draft draft;
  draft.create = std::move(start.create);
  draft.release = std::move(start.release);
  draft.remove = std::move(start.remove);
  if (!start.launched || !workers.all_bound()) {
    return finish(observation.job, std::move(draft), std::move(start.update));
  }
  return decide_run(observation, workers, settings, std::move(draft), std::move(start.update));
}

}  // namespace

Decision decide(const Observation& observation, const PodSettings& settings) {
  const api::TrainingJob& job = observation.job;
  const Workers workers(observation);
  const JobEnd end(observation);
  StatusUpdate update = begin_update(observation, workers);
  if (job.meta.deletion_time.has_value()) return finish(observation, end.abandon(std::move(update)));
  if (update.holds("Succeeded") || update.holds("Failed")) return finish(observation, end.clean_up(std::move(update)));
  // Success comes before the clock and before a wish to suspend: both may have come while no operator ran. The workers
  // of a suspended job may end with 0 because they were told to end.
  if (update.status.workers_succeeded == job.workers.replicas && !update.holds("Suspended")) {
    return decide_success(observation, workers, std::move(update));
  }
  const auto& limit = job.run_policy.active_deadline;
  if (limit.has_value() && update.status.start_time.has_value()) {
    const absl::Duration left = *update.status.start_time + *limit - observation.now;
    if (left <= absl::ZeroDuration()) {
      const std::string message = absl::StrCat("the job has been active for longer than its activeDeadlineSeconds, ",
                                               absl::ToInt64Seconds(*limit));
      return finish(observation, end.fail(std::move(update), "DeadlineExceeded", message));
    }
    update.requeue_after(left);
  }
  if (job.run_policy.suspend) return finish(observation, end.suspend(std::move(update)));
  if (update.holds("Suspended")) return finish(observation, end.resume(std::move(update)));
  if (auto failure = find_failure(observation, workers, update.holds("Created")); failure.has_value()) {
    return decide_failure(observation, workers, std::move(update), *std::move(failure));
  }
  return decide_attempt(observation, workers, settings, std::move(update));
}

}  // namespace gleaner::reconcile
