#include "operator/reconcile/pod_view.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "common/api/pod.h"
#include "common/base/status_macros.h"
#include "common/placement/placement.h"
#include "operator/reconcile/names.h"

namespace gleaner::reconcile {
namespace {

using nlohmann::json;

// Returns the member `name`, or a JSON null if there is none.
const json& at(const json& object, const char* name) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

std::string text(const json& value) { return value.is_string() ? value.get<std::string>() : std::string(); }

uint32_t number(const std::string& text) {
  uint32_t value = 0;
  return absl::SimpleAtoi(text, &value) ? value : 0;
}

PodView::Phase parse_phase(const std::string& phase) {
  if (phase == "Running") return PodView::Phase::kRunning;
  if (phase == "Succeeded") return PodView::Phase::kSucceeded;
  if (phase == "Failed") return PodView::Phase::kFailed;
  return PodView::Phase::kPending;
}

// Returns whether this reason in a failed pod's status means that its machine went away.
bool is_loss_of_node(absl::string_view reason) {
  static constexpr std::array<absl::string_view, 6> kReasons = {"NodeLost", "Preempting",   "Preempted",
                                                                "Shutdown", "NodeShutdown", "Terminated"};
  return std::find(kReasons.begin(), kReasons.end(), reason) != kReasons.end();
}

// Returns whether a container with this waiting reason waits because of an error.
bool is_start_error(absl::string_view reason) {
  return reason.substr(0, 3) == "Err" || reason == "ImagePullBackOff" || reason == "InvalidImageName" ||
         reason == "CrashLoopBackOff" || reason == "RunContainerError" || reason.substr(0, 6) == "Create";
}

void read_containers(const json& statuses, PodView& pod) {
  if (!statuses.is_array()) return;
  for (const json& status : statuses) {
    const json& state = at(status, "state");
    const json& waiting = at(state, "waiting");
    PodView::Obstacles& obstacles = pod.obstacles;
    if (std::string reason = text(at(waiting, "reason")); is_start_error(reason) && obstacles.waiting_reason.empty()) {
      obstacles.waiting_reason = std::move(reason);
      obstacles.waiting_message = text(at(waiting, "message"));
    }
    const json& terminated = at(state, "terminated");
    const json& code = at(terminated, "exitCode");
    if (!code.is_number_integer() || code.get<int>() == 0) continue;
    PodView::Exit exit{text(at(status, "name")), code.get<int>(), text(at(terminated, "reason"))};
    if (const auto time = api::parse_time(text(at(terminated, "finishedAt"))); time.ok()) exit.at = *time;
    std::optional<PodView::Exit>& first = pod.ending.exit;
    if (!first.has_value() || exit.at < first->at) first = std::move(exit);
  }
}

void read_gates(const json& gates, PodView::Obstacles& obstacles) {
  if (!gates.is_array()) return;
  for (const json& gate : gates) {
    const std::string name = text(at(gate, "name"));
    if (name == kGangGate) {
      obstacles.gated = true;
    } else {
      obstacles.other_gates.push_back(name);
    }
  }
}

// Reads the reason for which the cluster or the kubelet made the pod fail.
void read_reason(const json& status, PodView& pod) {
  std::string reason = text(at(status, "reason"));
  if (pod.phase != PodView::Phase::kFailed || reason.empty()) return;
  if (is_loss_of_node(reason)) {
    pod.ending.evicted_by = std::move(reason);
  } else {
    pod.ending.refused_by = std::move(reason);
    pod.ending.refusal = text(at(status, "message"));
  }
}

void read_conditions(const json& conditions, PodView& pod) {
  if (!conditions.is_array()) return;
  for (const json& condition : conditions) {
    const std::string type = text(at(condition, "type"));
    const bool is_true = text(at(condition, "status")) == "True";
    if (type == "DisruptionTarget" && is_true) pod.ending.evicted_by = text(at(condition, "reason"));
    if (type == "PodScheduled" && !is_true && text(at(condition, "reason")) == "Unschedulable") {
      pod.obstacles.unschedulable = text(at(condition, "message"));
    }
  }
}

}  // namespace

absl::StatusOr<PodView> parse_pod(const json& object) {
  GLN_ASSIGN_OR_RETURN(const api::ObjectMeta meta, api::parse_meta(object));
  PodView pod;
  pod.name = meta.name;
  pod.ns = meta.ns;
  pod.uid = meta.uid;
  pod.created = meta.creation_time;
  pod.deletion = meta.deletion_time;
  pod.job = meta.label(api::kJobLabel);
  pod.role = meta.label(api::kRoleLabel);
  pod.index = number(meta.label(api::kIndexLabel));
  pod.attempt = number(meta.label(api::kAttemptLabel));
  if (uint32_t rank = 0; absl::SimpleAtoi(meta.label(api::kRankLabel), &rank)) pod.rank = rank;
  pod.bits_per_second = api::bandwidth_limit(meta);
  for (const api::OwnerReference& owner : meta.owners) {
    if (owner.controller && owner.kind == "TrainingJob") pod.owner_uid = owner.uid;
  }
  const json& spec = at(object, "spec");
  pod.node = text(at(spec, "nodeName"));
  if (const json& priority = at(spec, "priority"); priority.is_number_integer()) pod.priority = priority.get<int32_t>();
  if (pod.role == kSummer) {
    GLN_ASSIGN_OR_RETURN(const api::Requests requests, api::total_requests(spec));
    pod.cpus = placement::needed_cpus(requests.cpus);
  }
  read_gates(at(spec, "schedulingGates"), pod.obstacles);
  const json& status = at(object, "status");
  pod.phase = parse_phase(text(at(status, "phase")));
  read_reason(status, pod);
  read_conditions(at(status, "conditions"), pod);
  read_containers(at(status, "initContainerStatuses"), pod);
  read_containers(at(status, "containerStatuses"), pod);
  return pod;
}

}  // namespace gleaner::reconcile
