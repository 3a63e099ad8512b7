// How attempts and jobs end: success, failure, restart, suspension, and what is cleaned up afterwards.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "operator/reconcile/attempt.h"
#include "operator/reconcile/names.h"

namespace gleaner::reconcile {

void Attempt::remove(const PodView& pod) {
  if (!pod.deletion.has_value()) decision_.remove.push_back({pod.name, pod.uid});
}

void Attempt::remove_pods(bool finished_too) {
  for (const auto& pod : observed_.pods) {
    if (finished_too || !pod->finished()) remove(*pod);
  }
}

void Attempt::stop_running(const std::string& reason, const std::string& message) {
  set("Running", false, reason, message);
  if (is("Stalled")) set("Stalled", false, reason, message);
}

void Attempt::succeed() {
  set("Succeeded", true, "AllWorkersSucceeded", absl::StrCat("all ", job_.workers.replicas, " workers ended with 0"));
  stop_running("Finished", "");
  set("Restarting", false, "Finished", "");
  status_.completion_time = now_;
  note(false, "Succeeded", absl::StrCat("all ", job_.workers.replicas, " workers ended with 0"));
  if (observed_.plan.has_value()) report();
  clean_up();
}

void Attempt::fail(std::string reason, std::string message) {
  set("Failed", true, reason, message);
  stop_running("Finished", "");
  set("Restarting", false, "Finished", "");
  status_.completion_time = now_;
  note(true, std::move(reason), std::move(message));
  clean_up();
}

void Attempt::clean_up() {
  decision_.end_session = is("Succeeded") ? "the job has succeeded" : "the job has failed";
  using types::CleanPodPolicy;
  const CleanPodPolicy policy = job_.run_policy.clean_pod_policy;
  for (const auto& pod : observed_.pods) {
    // Summers give the machines back at once, whatever is kept of the workers.
    if (pod->role == kSummer || policy == CleanPodPolicy::kAll ||
        (policy == CleanPodPolicy::kRunning && !pod->finished()))
      remove(*pod);
  }
  status_.summers_ready = 0;
  const auto& ttl = job_.run_policy.ttl_after_finished;
  if (!ttl.has_value() || !status_.completion_time.has_value()) return;
  const absl::Time due = *status_.completion_time + *ttl;
  if (now_ >= due) {
    decision_.remove_job = true;
  } else {
    look_again(due - now_);
  }
}

void Attempt::suspend() {
  if (!is("Suspended")) {
    set("Suspended", true, "Suspended", "runPolicy.suspend is true: the pods are removed");
    note(false, "Suspended", "the job is suspended: its pods are removed");
  }
  set("Created", false, "Suspended", "");
  stop_running("Suspended", "");
  set("Restarting", false, "Suspended", "");
  status_.start_time.reset();
  decision_.end_session = "the job is suspended";
  remove_pods(/*finished_too=*/true);
  status_.workers_ready = status_.summers_ready = 0;
}

void Attempt::resume() {
  set("Suspended", false, "Resumed", "");
  note(false, "Resumed", "the job goes on from its checkpoint");
  begin_next_attempt("the job is resumed");
}

void Attempt::begin_next_attempt(const std::string& why) {
  status_.attempt += 1;
  status_.epoch = 0;
  status_.next_summer = 0;
  status_.summers = {};
  status_.goodput.clear();
  status_.efficiency.clear();
  set("Created", false, "NextAttempt", why);
  decision_.end_session = why;
  remove_pods(/*finished_too=*/false);
  status_.workers_ready = status_.workers_succeeded = status_.workers_failed = status_.summers_ready = 0;
  look_again(absl::ZeroDuration());
}

void Attempt::restart(const Failure& failure) {
  decision_.confirm_missing = failure.confirm_missing;
  switch (failure.kind) {
    case Failure::Kind::kUndecided:
      keep_session();
      look_again(absl::Seconds(1));
      return;
    case Failure::Kind::kPermanent:
      fail(failure.reason, absl::StrCat(failure.message, "; exit codes from 1 to 127 are not tried again"));
      return;
    case Failure::Kind::kOwn:
      if (status_.restarts >= job_.run_policy.backoff_limit) {
        fail("BackoffLimitExceeded", absl::StrCat(failure.message, "; restarted ", status_.restarts,
                                                  " times, which is runPolicy.backoffLimit"));
        return;
      }
      status_.restarts += 1;
      break;
    case Failure::Kind::kInterrupted:
      break;
  }
  stop_running(failure.reason, failure.message);
  set("Restarting", true, failure.reason, failure.message);
  // The pause before a restart counts from here, also when the attempt before never ran.
  for (types::Condition& condition : status_.conditions) {
    if (condition.type == "Restarting") condition.last_transition = now_;
  }
  note(true, "Restarting", absl::StrCat(failure.message, "; all workers are started again"));
  begin_next_attempt(failure.message);
}

}  // namespace gleaner::reconcile
