#include "operator/reconcile/decide.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "operator/reconcile/attempt.h"
#include "operator/reconcile/names.h"

namespace gleaner::reconcile {
namespace {

bool holds(const std::vector<types::Condition>& conditions, const char* type) {
  const types::Condition* condition = types::find_condition(conditions, type);
  return condition != nullptr && condition->status;
}

}  // namespace

std::string phase_of(const std::vector<types::Condition>& conditions) {
  for (const char* phase : {"Succeeded", "Failed", "Suspended", "Restarting", "Running"}) {
    if (holds(conditions, phase)) return phase;
  }
  return holds(conditions, "Created") ? "Starting" : "Pending";
}

Attempt::Attempt(const Observed& observed, const Settings& settings)
    : observed_(observed),
      job_(observed.job),
      settings_(settings),
      now_(observed.now),
      workers_(members_of_attempt(observed, kWorker, observed.job.workers.replicas)) {
  status_ = job_.status;
  status_.observed_generation = job_.meta.generation;
  status_.workers_wanted = job_.workers.replicas;
  status_.selector = absl::StrCat(types::kJobLabel, "=", job_.meta.name, ",", types::kRoleLabel, "=", kWorker);
}

bool Attempt::is(const char* condition) const { return holds(status_.conditions, condition); }

void Attempt::set(const char* type, bool status, std::string reason, std::string message) {
  types::set_condition(status_.conditions,
                       {type, status, std::move(reason), std::move(message), now_, job_.meta.generation}, now_);
}

void Attempt::note(bool warning, std::string reason, std::string message, std::string cause) {
  decision_.events.push_back({warning, std::move(reason), std::move(message), std::move(cause)});
}

void Attempt::look_again(absl::Duration delay) {
  if (!decision_.look_again.has_value() || delay < *decision_.look_again) decision_.look_again = delay;
}

bool Attempt::all_bound() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const PodView* pod) { return pod && !pod->node.empty(); });
}

bool Attempt::all_running() const {
  return std::all_of(workers_.begin(), workers_.end(),
                     [](const PodView* pod) { return pod && pod->phase != PodView::Phase::kPending; });
}

void Attempt::count_members() {
  status_.workers_ready = status_.workers_succeeded = status_.workers_failed = status_.summers_ready = 0;
  for (const PodView* pod : workers_) {
    if (pod == nullptr) continue;
    status_.workers_ready += pod->phase == PodView::Phase::kRunning && !pod->deletion.has_value();
    status_.workers_succeeded += pod->phase == PodView::Phase::kSucceeded;
    status_.workers_failed += pod->phase == PodView::Phase::kFailed;
  }
  for (const auto& pod : observed_.pods) {
    status_.summers_ready += pod->role == kSummer && pod->attempt == job_.status.attempt &&
                             !pod->deletion.has_value() && pod->phase == PodView::Phase::kRunning;
  }
}

bool Attempt::settled() {
  if (job_.meta.deletion_time.has_value()) {  // owner references take care of everything in the cluster
    decision_.end_session = "the job was deleted";
    return true;
  }
  if (is("Succeeded") || is("Failed")) {
    clean_up();
    return true;
  }
  const auto& deadline = job_.run_policy.active_deadline;
  if (deadline.has_value() && status_.start_time.has_value()) {
    if (now_ >= *status_.start_time + *deadline) {
      fail("DeadlineExceeded", absl::StrCat("the job has been active for longer than its activeDeadlineSeconds, ",
                                            absl::ToInt64Seconds(*deadline)));
      return true;
    }
    look_again(*status_.start_time + *deadline - now_);
  }
  if (job_.run_policy.suspend) {
    suspend();
    return true;
  }
  if (is("Suspended")) {
    resume();
    return true;
  }
  return false;
}

Decision Attempt::decide() && {
  count_members();
  if (!settled()) {
    if (status_.workers_succeeded == job_.workers.replicas) {
      succeed();
    } else if (const auto failure = find_failure(observed_, launched()); failure.has_value()) {
      restart(*failure);
    } else if (may_start()) {
      make_workers();
      if (launched()) run();
    }
  }
  status_.phase = phase_of(status_.conditions);
  return std::move(decision_);
}

Decision decide(const Observed& observed, const Settings& settings) { return Attempt(observed, settings).decide(); }

}  // namespace gleaner::reconcile
