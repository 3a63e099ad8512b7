// Nodes and pods as the API server writes them.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "operator/placement/fleet.h"
#include "operator/types/fields.h"
#include "operator/types/meta.h"

namespace gleaner::placement {
namespace {

using types::Fields;

// More than any machine has, and still a whole number in a double.
constexpr double kMostMemory = 1e18;

struct Requests {
  double cpus = 0, memory_bytes = 0;
};

struct NameAndValue {
  std::string name, value;
};

// The lower of what it may send and receive; 0: neither is limited.
absl::StatusOr<double> bandwidth(const types::ObjectMeta& meta) {
  double lowest = 0;
  for (const char* name : {"kubernetes.io/egress-bandwidth", "kubernetes.io/ingress-bandwidth"}) {
    const auto annotation = meta.annotations.find(name);
    if (annotation == meta.annotations.end()) continue;
    GLN_ASSIGN_OR_RETURN(const double limit, types::parse_quantity(annotation->second));
    if (limit > 0 && (lowest == 0 || limit < lowest)) lowest = limit;
  }
  return lowest;
}

std::string label(const types::ObjectMeta& meta, const char* name) {
  const auto found = meta.labels.find(name);
  return found == meta.labels.end() ? "" : found->second;
}

}  // namespace

absl::StatusOr<Node> parse_node(const nlohmann::json& object) {
  GLN_ASSIGN_OR_RETURN(types::ObjectMeta meta, types::parse_meta(object));
  absl::Status status;
  const Fields document(object, "", status);
  Node node;
  node.name = std::move(meta.name);
  node.labels.insert(meta.labels.begin(), meta.labels.end());
  const Fields spec = document.object("spec");
  spec.flag("unschedulable", node.cordoned);
  std::vector<std::string> effects;
  spec.list("taints", effects, [](const Fields& taint, std::string& effect) { taint.text("effect", effect); });
  node.tainted = std::any_of(effects.begin(), effects.end(),
                             [](const std::string& effect) { return effect == "NoSchedule" || effect == "NoExecute"; });
  std::vector<NameAndValue> conditions;
  document.object("status").list("conditions", conditions, [](const Fields& condition, NameAndValue& read) {
    condition.text("type", read.name);
    condition.text("status", read.value);
  });
  node.ready = std::any_of(conditions.begin(), conditions.end(), [](const NameAndValue& condition) {
    return condition.name == "Ready" && condition.value == "True";
  });
  if (!status.ok()) return status;
  return node;
}

absl::StatusOr<Pod> parse_pod(const nlohmann::json& object) {
  GLN_ASSIGN_OR_RETURN(const types::ObjectMeta meta, types::parse_meta(object));
  Pod pod;
  pod.key = meta.key();
  pod.uid = meta.uid;
  pod.role = label(meta, types::kRoleLabel);
  const std::string job = label(meta, types::kJobLabel);
  if (job.empty() || pod.role.empty()) return pod;  // not ours, and so is what else it says
  pod.job = absl::StrCat(meta.ns, "/", job);
  absl::Status status;
  const Fields document(object, "", status);
  const Fields spec = document.object("spec");
  spec.text("nodeName", pod.node);
  std::string phase;
  document.object("status").text("phase", phase);
  pod.finished = phase == "Succeeded" || phase == "Failed";
  std::vector<Requests> containers;
  spec.list("containers", containers, [](const Fields& container, Requests& read) {
    const Fields requests = container.object("resources").object("requests");
    requests.quantity("cpu", read.cpus);
    requests.quantity("memory", read.memory_bytes);
  });
  if (!status.ok()) return status;
  double memory_bytes = 0;
  for (const Requests& container : containers) {
    pod.cpus += container.cpus;
    memory_bytes += container.memory_bytes;
  }
  pod.memory_bytes = static_cast<uint64_t>(std::clamp(memory_bytes, 0.0, kMostMemory));
  GLN_ASSIGN_OR_RETURN(pod.bits_per_second, bandwidth(meta));
  return pod;
}

}  // namespace gleaner::placement
