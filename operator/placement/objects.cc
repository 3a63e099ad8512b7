// Nodes and pods as the API server writes them.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "operator/placement/fleet.h"
#include "operator/types/fields.h"
#include "operator/types/meta.h"
#include "operator/types/pod.h"

namespace gleaner::placement {
namespace {

using types::Fields;

struct NameAndValue {
  std::string name, value;
};

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
  pod.role = meta.label(types::kRoleLabel);
  const std::string job = meta.label(types::kJobLabel);
  if (job.empty() || pod.role.empty()) return pod;  // not ours, and so is what else it says
  pod.job = absl::StrCat(meta.ns, "/", job);
  absl::Status status;
  const Fields document(object, "", status);
  document.object("spec").text("nodeName", pod.node);
  std::string phase;
  document.object("status").text("phase", phase);
  pod.finished = phase == "Succeeded" || phase == "Failed";
  if (!status.ok()) return status;
  if (const auto* found = document.find("spec"); found != nullptr) {
    GLN_ASSIGN_OR_RETURN(const types::Requests requests, types::total_requests(*found));
    pod.cpus = needed_cpus(requests.cpus);
    pod.memory_bytes = requests.memory_bytes;
  }
  pod.bits_per_second = types::bandwidth_limit(meta);
  return pod;
}

}  // namespace gleaner::placement
