// Parses nodes and pods of the API server.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/api/fields.h"
#include "common/api/meta.h"
#include "common/api/pod.h"
#include "common/base/status_macros.h"
#include "common/placement/fleet.h"

namespace gleaner::placement {
namespace {

using api::Fields;

struct NameAndValue {
  std::string name, value;
};

}  // namespace

absl::StatusOr<Node> parse_node(const nlohmann::json& object) {
  GLN_ASSIGN_OR_RETURN(api::ObjectMeta meta, api::parse_meta(object));
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
  GLN_ASSIGN_OR_RETURN(const api::ObjectMeta meta, api::parse_meta(object));
  Pod pod;
  pod.key = meta.key();
  pod.uid = meta.uid;
  pod.role = meta.label(api::kRoleLabel);
  const std::string job = meta.label(api::kJobLabel);
  if (job.empty() || pod.role.empty()) return pod;  // not a pod of Gleaner: its other fields don't matter
  pod.job = absl::StrCat(meta.ns, "/", job);
  absl::Status status;
  const Fields document(object, "", status);
  document.object("spec").text("nodeName", pod.node);
  std::string phase;
  document.object("status").text("phase", phase);
  pod.finished = phase == "Succeeded" || phase == "Failed";
  if (!status.ok()) return status;
  if (const auto* found = document.find("spec"); found != nullptr) {
    GLN_ASSIGN_OR_RETURN(const api::Requests requests, api::total_requests(*found));
    pod.cpus = needed_cpus(requests.cpus);
    pod.memory_bytes = requests.memory_bytes;
  }
  pod.bits_per_second = api::bandwidth_limit(meta);
  return pod;
}

}  // namespace gleaner::placement
