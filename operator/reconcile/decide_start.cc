// How an attempt begins: its workers are made as a gang, and either all of them come to run or none keeps its machine.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "operator/reconcile/attempt.h"
#include "operator/reconcile/names.h"

namespace gleaner::reconcile {
namespace {

constexpr absl::Duration kFirstPause = absl::Seconds(1);  // before the first restart; doubled with each
constexpr absl::Duration kLongestPause = absl::Minutes(5);
constexpr absl::Duration kReleasePause = absl::Seconds(30);  // others may have what a released gang gave back
constexpr absl::Duration kTerminating = absl::Seconds(30);   // beyond its grace period, for a node that does not answer
constexpr absl::Duration kQuotaRetry = absl::Seconds(15);
constexpr uint32_t kMaxDoublings = 9;

absl::Duration restart_pause(uint32_t restarts) {
  if (restarts == 0) return absl::ZeroDuration();
  return std::min(kLongestPause, kFirstPause * (1U << std::min(restarts - 1, kMaxDoublings)));
}

}  // namespace

// Pauses, and pods of earlier attempts that still write to the same checkpoint.
bool Attempt::may_start() {
  absl::Time due = absl::InfinitePast();
  if (const auto* restarting = types::find_condition(status_.conditions, "Restarting");
      restarting != nullptr && restarting->status) {
    due = restarting->last_transition + restart_pause(status_.restarts);
  }
  if (const auto* created = types::find_condition(status_.conditions, "Created");
      created != nullptr && created->reason == "StartDeadlineExceeded") {
    due = std::max(due, created->last_transition + kReleasePause);
  }
  bool earlier_gone = true;
  for (const auto& pod : observed_.pods) {
    if (pod->attempt == job_.status.attempt || pod->finished()) continue;
    remove(*pod);
    if (pod->deletion.has_value() && now_ > *pod->deletion + kTerminating) continue;
    earlier_gone = false;
    look_again(absl::Seconds(2));
  }
  if (now_ < due) look_again(due - now_);
  return earlier_gone && now_ >= due;
}

void Attempt::make_workers() {
  uint32_t missing = 0;
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i] != nullptr) continue;
    ++missing;
    absl::StatusOr<nlohmann::json> pod = worker_pod(job_, i, settings_);
    if (!pod.ok()) {
      decision_.create.clear();
      fail("InvalidTemplate", std::string(pod.status().message()));
      return;
    }
    decision_.create.push_back(*std::move(pod));
  }
  decision_.service = missing > 0;
  if (!status_.start_time.has_value()) status_.start_time = now_;
  if (missing == 0) launch();
  explain_waiting();
  give_up_if_late();
}

void Attempt::launch() {
  if (!launched()) {
    set("Created", true, "PodsCreated", absl::StrCat("all ", job_.workers.replicas, " worker pods are there"));
    note(false, "PodsCreated",
         absl::StrCat("all ", job_.workers.replicas, " worker pods are there: they may be scheduled"));
  }
  for (const PodView* pod : workers_) {
    if (pod != nullptr && pod->gated) decision_.release.push_back({pod->name, pod->other_gates});
  }
}

void Attempt::explain_waiting() {
  if (all_running()) return;
  for (const PodView* pod : workers_) {
    if (pod == nullptr || (pod->waiting_reason.empty() && pod->unschedulable.empty())) continue;
    const bool image = absl::StrContains(pod->waiting_reason, "Image");
    const std::string reason =
        !pod->waiting_reason.empty() ? (image ? "ImagePullFailed" : "ContainerNotStarted") : "Unschedulable";
    const std::string message =
        absl::StrCat("pod ", pod->name, ": ",
                     pod->waiting_reason.empty() ? pod->unschedulable
                                                 : absl::StrCat(pod->waiting_reason, ": ", pod->waiting_message));
    const types::Condition* running = types::find_condition(status_.conditions, "Running");
    if (running == nullptr || running->reason != reason) note(true, reason, message);
    set("Running", false, reason, message);
    return;
  }
  if (!is("Running")) set("Running", false, "WorkersPending", "workers are being scheduled and started");
}

void Attempt::give_up_if_late() {
  if (all_running()) return;
  absl::Time first = absl::InfiniteFuture();
  for (const PodView* pod : workers_) {
    if (pod != nullptr) first = std::min(first, pod->created);
  }
  if (first == absl::InfiniteFuture()) return;
  const absl::Time due = first + job_.run_policy.start_deadline;
  if (now_ < due) {
    look_again(due - now_);
    return;
  }
  const types::Condition* running = types::find_condition(status_.conditions, "Running");
  const std::string message = absl::StrCat(
      "not all workers ran within startDeadlineSeconds (", absl::ToInt64Seconds(job_.run_policy.start_deadline),
      "): all are released and tried again later. ", running == nullptr ? "" : running->message);
  note(true, "StartDeadlineExceeded", message);
  decision_.create.clear();
  decision_.release.clear();
  decision_.service = false;
  begin_next_attempt(message);
  set("Created", false, "StartDeadlineExceeded", message);
}

void note_refusal(const types::TrainingJob& job, const absl::Status& why, absl::Time now, Decision& decision) {
  const bool quota = absl::IsResourceExhausted(why);
  const std::string reason = quota ? "QuotaExceeded" : "PodRefused";
  const std::string message = absl::StrCat("the API server refuses a pod: ", why.message(),
                                           quota ? "; tried again until the quota has room" : "");
  const types::Condition* before = types::find_condition(job.status.conditions, "Created");
  if (before == nullptr || before->reason != reason) decision.events.push_back({true, reason, message});
  types::set_condition(decision.status.conditions, {"Created", false, reason, message, now, job.meta.generation}, now);
  decision.status.phase = phase_of(decision.status.conditions);
  if (!decision.look_again.has_value() || kQuotaRetry < *decision.look_again) decision.look_again = kQuotaRetry;
}

}  // namespace gleaner::reconcile
