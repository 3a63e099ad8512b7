#include "operator/reconcile/decide.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operator/reconcile/attempt_session.h"
#include "operator/reconcile/bandwidth.h"
#include "operator/reconcile/failure.h"
#include "operator/reconcile/gang_start.h"
#include "operator/reconcile/job_end.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/progress.h"
#include "operator/reconcile/status_update.h"
#include "operator/reconcile/summer_placement.h"
#include "operator/reconcile/summer_scaling.h"
#include "operator/reconcile/summers.h"
#include "operator/reconcile/workers.h"

namespace gleaner::reconcile {
namespace {

constexpr absl::Duration kSoon = absl::Seconds(1);

template <typename T>
void append(std::vector<T>& all, std::vector<T> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// Returns the job's status with the figures that follow from the objects alone: the numbers of workers and summers.
StatusUpdate begin_update(const Observed& observed, const Workers& workers) {
  const api::TrainingJob& job = observed.job;
  StatusUpdate update(job, observed.now);
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
  for (const PodView* pod : summers_of_attempt(observed)) {
    status.summers_ready += pod->phase == PodView::Phase::kRunning && !pod->deletion.has_value();
  }
  return update;
}

Decision finish(Decision decision, StatusUpdate update) {
  decision.events = update.events();
  decision.requeue_after = update.requeue();
  decision.status = std::move(update.status);
  decision.status.phase = phase_of(decision.status.conditions);
  return decision;
}

Decision finish(EndDecision end, std::vector<std::string> confirm_missing = {}) {
  Decision decision;
  decision.confirm_missing = std::move(confirm_missing);
  decision.end_session = std::move(end.end_session);
  decision.remove = std::move(end.remove);
  decision.remove_job = end.remove_job;
  return finish(std::move(decision), std::move(end.update));
}

Decision decide_success(const Observed& observed, const Workers& workers, StatusUpdate update) {
  EndDecision end = JobEnd(observed).succeed(std::move(update));
  if (!observed.plan.has_value()) return finish(std::move(end));
  ProgressDecision progress = Progress(observed, workers).decide(std::move(end.update));
  end.update = std::move(progress.update);
  Decision decision = finish(std::move(end));
  decision.plan = std::move(progress.plan);
  return decision;
}

Decision decide_failure(const Observed& observed, const Workers& workers, StatusUpdate update, Failure failure) {
  if (failure.kind != Failure::Kind::kUndecided) {
    EndDecision end = JobEnd(observed).restart(std::move(update), failure);
    return finish(std::move(end), std::move(failure.confirm_missing));
  }
  const AttemptSession session(observed, workers);
  Decision decision;
  decision.confirm_missing = std::move(failure.confirm_missing);
  decision.session = session.options();
  decision.ended = session.ended_workers();
  update.requeue_after(kSoon);
  return finish(std::move(decision), std::move(update));
}

// Decides about an attempt whose workers are all bound to nodes. `decision` has the decisions about its start.
Decision decide_run(const Observed& observed, const Workers& workers, const PodSettings& settings, Decision decision,
                    StatusUpdate update) {
  PlacementDecision placement = SummerPlacement(observed, workers, settings).decide(std::move(update));
  update = std::move(placement.update);
  append(decision.create_summers, std::move(placement.create));
  append(decision.remove, std::move(placement.remove));
  if (!placement.settled) return finish(std::move(decision), std::move(update));
  const AttemptSession session(observed, workers);
  decision.session = session.options();
  decision.ended = session.ended_workers();
  if (wants_summers(observed.job) && has_begun(observed)) {
    ScalingDecision scaling = SummerScaling(observed, settings).decide(std::move(update));
    update = std::move(scaling.update);
    append(decision.create_summers, std::move(scaling.create));
    append(decision.remove, std::move(scaling.remove));
    append(decision.ended, std::move(scaling.ended));
    decision.release_summers = std::move(scaling.release);
    decision.bandwidths = changed_bandwidths(observed, workers.pods());
  } else if (const auto loss = session.early_loss(); loss.has_value()) {
    decision.session_summers = loss->summers;
    update.requeue_after(kSoon);
  }
  ProgressDecision progress = Progress(observed, workers).decide(std::move(update));
  decision.plan = std::move(progress.plan);
  return finish(std::move(decision), std::move(progress.update));
}

Decision decide_attempt(const Observed& observed, const Workers& workers, const PodSettings& settings,
                        StatusUpdate update) {
  StartDecision start = GangStart(observed, workers, settings).decide(std::move(update));
  const JobEnd end(observed);
  if (start.invalid_template.has_value()) {
    return finish(end.fail(std::move(start.update), "InvalidTemplate", *start.invalid_template));
  }
  if (start.late.has_value()) return finish(end.release_gang(std::move(start.update), *start.late));
  Decision decision;
  decision.service = start.service;
  decision.create = std::move(start.create);
  decision.release = std::move(start.release);
  decision.remove = std::move(start.remove);
  if (!start.launched || !workers.all_bound()) return finish(std::move(decision), std::move(start.update));
  return decide_run(observed, workers, settings, std::move(decision), std::move(start.update));
}

}  // namespace

Decision decide(const Observed& observed, const PodSettings& settings) {
  const api::TrainingJob& job = observed.job;
  const Workers workers(observed);
  const JobEnd end(observed);
  StatusUpdate update = begin_update(observed, workers);
  if (job.meta.deletion_time.has_value()) return finish(end.abandon(std::move(update)));
  if (update.holds("Succeeded") || update.holds("Failed")) return finish(end.clean_up(std::move(update)));
  const auto& limit = job.run_policy.active_deadline;
  if (limit.has_value() && update.status.start_time.has_value()) {
    const absl::Duration left = *update.status.start_time + *limit - observed.now;
    if (left <= absl::ZeroDuration()) {
      const std::string message = absl::StrCat("the job has been active for longer than its activeDeadlineSeconds, ",
                                               absl::ToInt64Seconds(*limit));
      return finish(end.fail(std::move(update), "DeadlineExceeded", message));
    }
    update.requeue_after(left);
  }
  if (job.run_policy.suspend) return finish(end.suspend(std::move(update)));
  if (update.holds("Suspended")) return finish(end.resume(std::move(update)));
  if (update.status.workers_succeeded == job.workers.replicas) {
    return decide_success(observed, workers, std::move(update));
  }
  if (auto failure = find_failure(observed, workers, update.holds("Created")); failure.has_value()) {
    return decide_failure(observed, workers, std::move(update), *std::move(failure));
  }
  return decide_attempt(observed, workers, settings, std::move(update));
}

}  // namespace gleaner::reconcile
