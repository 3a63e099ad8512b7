#include "operator/reconcile/failure.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "operator/reconcile/names.h"

namespace gleaner::reconcile {
namespace {

constexpr int kFirstSignalCode = 128;
// The time by which the ends of other pods and the session's outcome may lag behind the first pod that failed.
constexpr absl::Duration kSettle = absl::Seconds(3);
// The time to wait until the cluster shows what happened to a member that the coordinator lost.
constexpr absl::Duration kPatience = absl::Seconds(20);

std::string pod_on_node(const PodView& pod) {
  return absl::StrCat("pod ", pod.name, pod.node.empty() ? "" : " on node ", pod.node);
}

Failure interrupted(const char* reason, std::string message) {
  return {Failure::Kind::kInterrupted, reason, std::move(message)};
}

std::string exit_text(const PodView& pod) {
  const PodView::Exit& exit = *pod.ending.exit;
  std::string text = absl::StrCat(pod_on_node(pod), ": container ", exit.container, " ended with ", exit.code);
  if (!exit.reason.empty() && exit.reason != "Error") absl::StrAppend(&text, " (", exit.reason, ")");
  return text;
}

bool on_lost_node(const Observation& observation, const PodView& pod) {
  if (pod.node.empty()) return false;
  const NodeView node = find_node(observation, pod.node);
  return !node.exists || !node.ready;
}

// Returns the failure of a pod that the kubelet refused or ended. Unless its node is lost, the next attempt is likely
// to meet the same refusal, so it counts.
Failure judge_refusal(const Observation& observation, const PodView& pod) {
  const PodView::Ending& ending = pod.ending;
  // The kubelet's own word may be none for a condition's reason: "OutOfnvidia.com/gpu".
  const char* reason = "KubeletRefused";
  if (ending.refused_by.empty()) reason = "PodLost";
  if (ending.refused_by == "Evicted") reason = "Evicted";
  std::string message = absl::StrCat(pod_on_node(pod), " failed without an exit code");
  if (!ending.refused_by.empty()) {
    message = absl::StrCat(pod_on_node(pod), " was ended by the kubelet: ", ending.refused_by);
    if (!ending.refusal.empty()) absl::StrAppend(&message, ", ", ending.refusal);
  }
  if (on_lost_node(observation, pod)) return interrupted("NodeLost", absl::StrCat(message, "; the node is lost"));
  return {Failure::Kind::kOwn, reason, std::move(message), {}, !ending.exit.has_value()};
}

// Returns the failure of one pod according to the API server; nullopt: it has none.
std::optional<Failure> judge(const Observation& observation, const PodView& pod) {
  if (pod.phase == PodView::Phase::kSucceeded) return std::nullopt;
  if (!pod.ending.evicted_by.empty()) {
    return interrupted("Evicted", absl::StrCat(pod_on_node(pod), " was ended by the cluster: ", pod.ending.evicted_by));
  }
  if (pod.deletion.has_value()) return interrupted("PodDeleted", absl::StrCat(pod_on_node(pod), " was deleted"));
  if (pod.phase != PodView::Phase::kFailed) return std::nullopt;
  const std::optional<PodView::Exit>& exit = pod.ending.exit;
  if (!exit.has_value() || !pod.ending.refused_by.empty()) return judge_refusal(observation, pod);
  Failure failure{Failure::Kind::kOwn, exit->reason == "OOMKilled" ? "OutOfMemory" : "ContainerFailed", exit_text(pod)};
  // A summer does not run the user's program, so its exit code is never permanent.
  if (exit->code < kFirstSignalCode && pod.role != kSummer) failure.kind = Failure::Kind::kPermanent;
  return failure;
}

// Returns whether `a` takes precedence: interruptions come before own failures, and own failures before permanent ones.
bool weighs_more(const Failure& a, const Failure& b) {
  const auto weight = [](const Failure& failure) { return static_cast<int>(failure.kind); };
  return weight(a) > weight(b);
}

const PodView* find_culprit(const Observation& observation) {
  if (!observation.session.has_value() || !observation.session->culprit.has_value()) return nullptr;
  const auto& culprit = *observation.session->culprit;
  const char* role = culprit.role == coordinator::Role::kSummer ? kSummer : kWorker;
  for (const auto& pod : observation.pods) {
    if (pod->attempt == observation.job.status.attempt && pod->role == role && pod->index == culprit.index)
      return pod.get();
  }
  return nullptr;
}

bool any_member_joined(const coordinator::JobState& session) {
  return std::any_of(session.members.begin(), session.members.end(), [](const auto& member) { return member.joined; });
}

// Returns the failure that the coordinator's session reports, for use if the pods themselves show no failure.
std::optional<Failure> judge_session(const Observation& observation) {
  if (!observation.session.has_value() || !observation.session->outcome.has_value() ||
      observation.session->outcome->ok()) {
    return std::nullopt;
  }
  // A program that does not use the library never joins, and can't lose a member.
  if (!any_member_joined(*observation.session)) return std::nullopt;
  const PodView* culprit = find_culprit(observation);
  const std::string said(observation.session->outcome->message());
  if (culprit != nullptr && on_lost_node(observation, *culprit)) {
    return interrupted("NodeLost", absl::StrCat("node ", culprit->node, " is lost with ", culprit->name, ": ", said));
  }
  if (observation.session_ended_for < kPatience) return Failure{Failure::Kind::kUndecided, "MemberLost", said, {}};
  return Failure{Failure::Kind::kOwn, "MemberLost", said, {}};
}

bool has_settled(const Observation& observation, const std::vector<const PodView*>& pods) {
  absl::Time first = absl::InfiniteFuture();
  for (const PodView* pod : pods) {
    if (pod != nullptr && pod->ending.exit.has_value()) first = std::min(first, pod->ending.exit->at);
  }
  // A wrong clock on the node must not delay the decision forever.
  const absl::Duration since = observation.now - first;
  return since >= kSettle || since < -absl::Minutes(1) || observation.session_ended_for >= kSettle;
}

}  // namespace

std::vector<const PodView*> members_of_attempt(const Observation& observation, const char* role, uint32_t count) {
  std::vector<const PodView*> members(count, nullptr);
  for (const auto& pod : observation.pods) {
    if (pod->role != role || pod->attempt != observation.job.status.attempt) continue;
    if (pod->index < members.size()) members[pod->index] = pod.get();
  }
  return members;
}

std::optional<Failure> find_failure(const Observation& observation, const Workers& workers, bool launched) {
  const std::vector<const PodView*>& pods = workers.pods();
  std::optional<Failure> worst;
  const auto consider = [&worst](std::optional<Failure> failure) {
    if (failure.has_value() && (!worst.has_value() || weighs_more(*failure, *worst))) worst = std::move(failure);
  };
  for (uint32_t i = 0; i < pods.size(); ++i) {
    if (workers.has_succeeded(i)) continue;
    if (pods[i] != nullptr) {
      consider(judge(observation, *pods[i]));
    } else if (launched) {
      const std::string name = pod_name(observation.job.meta.name, kWorker, i, observation.job.status.attempt);
      Failure gone = interrupted("PodDeleted", absl::StrCat("pod ", name, " is gone"));
      gone.confirm_missing.push_back(name);
      consider(std::move(gone));
    }
  }
  // A summer counts only if it is the session's culprit: a summer ends a session only before the first plan.
  if (const PodView* culprit = find_culprit(observation); culprit != nullptr) consider(judge(observation, *culprit));
  std::optional<Failure> session = judge_session(observation);
  if (!worst.has_value()) return session;
  // The session names a member whose loss the cluster has not shown yet; the other pods failed because of that loss.
  if (session.has_value() && session->kind == Failure::Kind::kInterrupted) return session;
  if (worst->kind == Failure::Kind::kPermanent && session.has_value() && find_culprit(observation) != nullptr &&
      !judge(observation, *find_culprit(observation)).has_value()) {
    return session;
  }
  if (worst->kind != Failure::Kind::kInterrupted && !has_settled(observation, pods)) {
    return Failure{Failure::Kind::kUndecided, worst->reason, worst->message, {}};
  }
  return worst;
}

}  // namespace gleaner::reconcile
