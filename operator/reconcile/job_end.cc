#include "operator/reconcile/job_end.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "operator/reconcile/names.h"

namespace gleaner::reconcile {
namespace {

// Returns the first time with whole seconds from `time` on, as the status can hold it.
absl::Time whole_seconds(absl::Time time) {
  return absl::FromUnixSeconds(absl::ToUnixSeconds(time + absl::Seconds(1) - absl::Nanoseconds(1)));
}

bool had_good_run(const Observation& observation) {
  const api::Condition* running = api::find_condition(observation.job.status.conditions, "Running");
  return running != nullptr && running->status && observation.now - running->last_transition >= kGoodRun;
}

}  // namespace

EndDecision JobEnd::abandon(StatusUpdate update) const { return {std::move(update), "the job was deleted", {}, false}; }

EndDecision JobEnd::succeed(StatusUpdate update) const {
  const std::string message = absl::StrCat("all ", job_.workers.replicas, " workers ended with 0");
  update.set_condition("Succeeded", true, "AllWorkersSucceeded", message);
  update.stop_running("Finished", "");
  update.set_condition("Restarting", false, "Finished", "");
  update.status.completion_time = observation_.now;
  update.add_event(false, "Succeeded", message);
  return clean_up(std::move(update));
}

EndDecision JobEnd::fail(StatusUpdate update, const std::string& reason, const std::string& message) const {
  update.set_condition("Failed", true, reason, message);
  update.stop_running("Finished", "");
  update.set_condition("Restarting", false, "Finished", "");
  update.status.completion_time = observation_.now;
  update.add_event(true, reason, message);
  return clean_up(std::move(update));
}

EndDecision JobEnd::clean_up(StatusUpdate update) const {
  const char* why = update.holds("Succeeded") ? "the job has succeeded" : "the job has failed";
  EndDecision end{std::move(update), why, {}, false};
  using api::CleanPodPolicy;
  const CleanPodPolicy policy = job_.run_policy.clean_pod_policy;
  for (const auto& pod : observation_.pods) {
    // Summers are always removed, also if the policy keeps worker pods.
    if (pod->role == kSummer || policy == CleanPodPolicy::kAll ||
        (policy == CleanPodPolicy::kRunning && !pod->finished()))
      add_removal(*pod, end.remove);
  }
  end.update.status.summers_ready = 0;
  const auto& ttl = job_.run_policy.ttl_after_finished;
  if (!ttl.has_value() || !end.update.status.completion_time.has_value()) return end;
  const absl::Time due = *end.update.status.completion_time + *ttl;
  if (observation_.now >= due) {
    end.remove_job = true;
  } else {
    end.update.requeue_after(due - observation_.now);
  }
  return end;
}

EndDecision JobEnd::suspend(StatusUpdate update) const {
  if (!update.holds("Suspended")) {
    update.set_condition("Suspended", true, "Suspended", "runPolicy.suspend is true: the pods are removed");
    update.add_event(false, "Suspended", "the job is suspended: its pods are removed");
  }
  update.set_condition("Created", false, "Suspended", "");
  update.stop_running("Suspended", "");
  update.set_condition("Restarting", false, "Suspended", "");
  update.status.start_time.reset();
  update.status.next_start_time.reset();
  update.status.succeeded_indexes.clear();
  update.status.workers_succeeded = 0;
  update.status.workers_ready = update.status.summers_ready = 0;
  EndDecision end{std::move(update), "the job is suspended", {}, false};
  for (const auto& pod : observation_.pods) add_removal(*pod, end.remove);
  return end;
}

EndDecision JobEnd::resume(StatusUpdate update) const {
  update.set_condition("Suspended", false, "Resumed", "");
  update.add_event(false, "Resumed", "the job goes on from its checkpoint");
  return begin_next_attempt(std::move(update), "the job is resumed", nullptr);
}

EndDecision JobEnd::begin_next_attempt(StatusUpdate update, const std::string& why, const Pauses* pauses) const {
  api::TrainingJobStatus& status = update.status;
  status.attempt += 1;
  status.retries = pauses == nullptr ? 0 : had_good_run(observation_) ? 1 : status.retries + 1;
  status.next_start_time.reset();
  std::string message = why;
  if (pauses != nullptr) {
    status.next_start_time = whole_seconds(observation_.now + pause_after(*pauses, status.retries, job_.meta.uid));
    absl::StrAppend(&message, "; the next attempt begins at ", api::format_time(*status.next_start_time));
  }
  status.epoch = 0;
  status.next_summer = 0;
  status.summers = {};
  status.communication.strategy.clear();
  status.communication.bits.clear();
  status.communication.goodput.clear();
  status.communication.efficiency.clear();
  // The success of a worker counts only for its attempt: the next one continues from a checkpoint with all workers.
  status.succeeded_indexes.clear();
  status.workers_ready = status.workers_succeeded = status.workers_failed = status.summers_ready = 0;
  update.set_condition("Created", false, "NextAttempt", message);
  update.requeue_after(absl::ZeroDuration());
  EndDecision end{std::move(update), why, {}, false};
  for (const auto& pod : observation_.pods) {
    if (!pod->finished()) add_removal(*pod, end.remove);
  }
  return end;
}

EndDecision JobEnd::restart(StatusUpdate update, const Failure& failure) const {
  if (failure.kind == Failure::Kind::kPermanent) {
    return fail(std::move(update), failure.reason,
                absl::StrCat(failure.message, "; exit codes from 1 to 127 are not tried again"));
  }
  if (failure.kind == Failure::Kind::kOwn) {
    if (update.status.restarts >= job_.run_policy.backoff_limit) {
      const std::string message = absl::StrCat(failure.message, "; restarted ", update.status.restarts,
                                               " times, which is runPolicy.backoffLimit");
      return fail(std::move(update), "BackoffLimitExceeded", message);
    }
    update.status.restarts += 1;
  }
  update.stop_running(failure.reason, failure.message);
  update.set_condition("Restarting", true, failure.reason, failure.message);
  EndDecision end =
      begin_next_attempt(std::move(update), failure.message, failure.never_ran ? &kReleasePauses : &kRestartPauses);
  const absl::Duration pause = *end.update.status.next_start_time - observation_.now;
  end.update.add_event(
      true, "Restarting",
      absl::StrCat(failure.message, "; all workers are started again in ", absl::FormatDuration(pause)));
  return end;
}

EndDecision JobEnd::release_gang(StatusUpdate update, const std::string& message) const {
  update.add_event(true, "StartDeadlineExceeded", message);
  EndDecision end = begin_next_attempt(std::move(update), message, &kReleasePauses);
  const std::string explained = end.update.condition("Created")->message;
  end.update.set_condition("Created", false, "StartDeadlineExceeded", explained);
  return end;
}

}  // namespace gleaner::reconcile
