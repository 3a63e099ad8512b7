#include "operator/reconcile/gang_start.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "operator/reconcile/gpus.h"
#include "operator/reconcile/pauses.h"
#include "operator/reconcile/rank_environment.h"

namespace gleaner::reconcile {
namespace {

// The time to wait beyond a pod's grace period, in case its node does not answer.
constexpr absl::Duration kTerminating = absl::Seconds(30);

// Returns the reason of the condition Running while a worker's pod has these obstacles.
const char* reason_of(const PodView::Obstacles& obstacles) {
  if (obstacles.waiting_reason.empty()) return "Unschedulable";
  return absl::StrContains(obstacles.waiting_reason, "Image") ? "ImagePullFailed" : "ContainerNotStarted";
}

}  // namespace

StartDecision GangStart::decide(StatusUpdate update) const {
  StartDecision start{std::move(update), {}, {}, {}, false, {}, {}};
  if (!may_start(start)) return start;
  create_workers(start);
  if (start.invalid_template.has_value()) return start;
  if (!start.update.status.start_time.has_value()) start.update.status.start_time = observation_.now;
  if (start.create.empty()) {
    open_gates(start);
  } else if (observation_.creation_pause > absl::ZeroDuration()) {
    postpone_creation(start);
  }
  explain_waiting(start.update);
  start.late = find_late(start.update);
  if (start.late.has_value()) return start;
  start.launched = start.update.holds("Created");
  if (start.launched) note_running(start.update);
  return start;
}

// Returns whether the attempt may start: its pause is over, and no pod of an earlier attempt can still write to the
// same checkpoint. Removes the pods of earlier attempts; the finished ones of the last attempt stay for their logs.
bool GangStart::may_start(StartDecision& start) const {
  StatusUpdate& update = start.update;
  bool may = true;
  for (const auto& pod : observation_.pods) {
    if (pod->attempt == job_.status.attempt) continue;
    if (!pod->finished() || pod->attempt + 1 < job_.status.attempt) add_removal(*pod, start.remove);
    if (pod->finished() || (pod->deletion.has_value() && observation_.now > *pod->deletion + kTerminating)) continue;
    may = false;
    update.requeue_after(absl::Seconds(2));
  }
  std::optional<absl::Time>& due = update.status.next_start_time;
  // A time that an operator with a wrong clock wrote must not delay the attempt for ever.
  if (due.has_value() && observation_.now < *due && *due - observation_.now <= kLongestPause) {
    may = false;
    update.requeue_after(*due - observation_.now);
  }
  if (may) due.reset();
  return may;
}

void GangStart::create_workers(StartDecision& start) const {
  const std::vector<const PodView*>& pods = workers_.pods();
  const placement::LabelLevels& levels = observation_.fabric->dividing_levels();
  for (uint32_t i = 0; i < pods.size(); ++i) {
    if (pods[i] != nullptr || workers_.has_succeeded(i)) continue;
    absl::StatusOr<nlohmann::json> pod = worker_pod(job_, i, settings_, levels);
    if (!pod.ok()) {
      start.invalid_template = std::string(pod.status().message());
      return;
    }
    start.create.push_back(*std::move(pod));
  }
}

// Waits for the next try. Until then the status keeps the API server's answer to the last one.
void GangStart::postpone_creation(StartDecision& start) const {
  start.create.clear();
  start.update.requeue_after(observation_.creation_pause);
}

void GangStart::open_gates(StartDecision& start) const {
  if (!start.update.holds("Created")) {
    const std::string message = absl::StrCat("all ", job_.workers.replicas, " worker pods exist");
    start.update.set_condition("Created", true, "PodsCreated", message);
    start.update.add_event(false, "PodsCreated", absl::StrCat(message, ": the scheduler may place them"));
    if (std::string hint = gpu_hint(job_.workers); !hint.empty()) {
      start.update.add_event(true, "LocalRanksDiffer", std::move(hint));
    }
  }
  for (const PodView* pod : workers_.pods()) {
    if (pod != nullptr && pod->obstacles.gated) start.release.push_back({pod->name, pod->obstacles.other_gates});
  }
}

void GangStart::explain_waiting(StatusUpdate& update) const {
  if (workers_.all_running()) return;
  for (const PodView* pod : workers_.pods()) {
    if (pod == nullptr) continue;
    const PodView::Obstacles& found = pod->obstacles;
    if (found.waiting_reason.empty() && found.unschedulable.empty()) continue;
    if (waits_for_rank(job_, *pod)) continue;  // it has no rank yet, or its kubelet tries again
    const std::string message =
        absl::StrCat("pod ", pod->name, ": ",
                     found.waiting_reason.empty() ? found.unschedulable
                                                  : absl::StrCat(found.waiting_reason, ": ", found.waiting_message));
    const std::string reason = reason_of(found);
    const api::Condition* running = update.condition("Running");
    if (running == nullptr || running->reason != reason) update.add_event(true, reason, message);
    update.set_condition("Running", false, reason, message);
    return;
  }
  if (update.holds("Running")) return;
  if (update.holds("Created")) {
    update.set_condition("Running", false, "WorkersPending", "workers are being scheduled and started");
  } else if (observation_.creation_pause <= absl::ZeroDuration()) {
    update.set_condition("Running", false, "WorkersPending", "the worker pods are being created");
  }
}

// Returns the reason to give the attempt up, if its workers are late.
std::optional<std::string> GangStart::find_late(StatusUpdate& update) const {
  const absl::Time first = workers_.first_created();
  if (workers_.all_running() || first == absl::InfiniteFuture()) return std::nullopt;
  const absl::Time due = first + job_.run_policy.start_deadline;
  if (observation_.now < due) {
    update.requeue_after(due - observation_.now);
    return std::nullopt;
  }
  const api::Condition* running = update.condition("Running");
  return absl::StrCat(
      "not all workers ran within startDeadlineSeconds (", absl::ToInt64Seconds(job_.run_policy.start_deadline),
      "): all release their machines and are tried again later. ", running == nullptr ? "" : running->message);
}

void GangStart::note_running(StatusUpdate& update) const {
  if (!workers_.all_running() || update.holds("Running")) return;
  const std::string message = absl::StrCat("all ", job_.workers.replicas, " workers run");
  update.set_condition("Running", true, "WorkersRunning", message);
  update.set_condition("Restarting", false, "WorkersRunning", "");
  update.add_event(false, "Running", message);
}

}  // namespace gleaner::reconcile
