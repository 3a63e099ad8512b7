#include "agent/publish/pods.h"

#include <algorithm>

#include "common/api/meta.h"
#include "common/base/status_macros.h"
#include "common/kube/object.h"

namespace gleaner::publish {
namespace {

using nlohmann::json;

absl::StatusOr<double> quantity(const json& amounts, const char* resource) {
  const std::string text = kube::text_at(amounts, {resource});
  if (text.empty()) return 0.0;
  return api::parse_quantity(text);
}

absl::StatusOr<Requests> parse_amounts(const json* amounts) {
  Requests requests;
  if (amounts == nullptr) return requests;
  GLN_ASSIGN_OR_RETURN(requests.cpus, quantity(*amounts, "cpu"));
  GLN_ASSIGN_OR_RETURN(requests.memory_bytes, quantity(*amounts, "memory"));
  return requests;
}

void add(Requests& to, const Requests& more) {
  to.cpus += more.cpus;
  to.memory_bytes += more.memory_bytes;
}

void raise(Requests& to, const Requests& least) {
  to.cpus = std::max(to.cpus, least.cpus);
  to.memory_bytes = std::max(to.memory_bytes, least.memory_bytes);
}

absl::StatusOr<Requests> effective_requests(const json& spec) {
  static const json kNone = json::array();
  Requests containers, sidecars, initial;
  const json* const init = kube::find(spec, {"initContainers"});
  for (const json& container : init == nullptr ? kNone : *init) {
    GLN_ASSIGN_OR_RETURN(Requests own, parse_amounts(kube::find(container, {"resources", "requests"})));
    const bool sidecar = kube::text_at(container, {"restartPolicy"}) == "Always";
    if (sidecar) add(sidecars, own);
    // While an init container runs, the sidecars that started before it also run.
    Requests together = sidecars;
    if (!sidecar) add(together, own);
    raise(initial, together);
  }
  const json* const main = kube::find(spec, {"containers"});
  for (const json& container : main == nullptr ? kNone : *main) {
    GLN_ASSIGN_OR_RETURN(const Requests own, parse_amounts(kube::find(container, {"resources", "requests"})));
    add(containers, own);
  }
  add(containers, sidecars);
  raise(containers, initial);
  return containers;
}

}  // namespace

absl::StatusOr<PodOnNode> parse_pod(const json& object) {
  PodOnNode pod;
  pod.uid = kube::uid_of(object);
  pod.summer = kube::text_at(object, {"metadata", "labels", api::kRoleLabel}) == "summer";
  const std::string phase = kube::text_at(object, {"status", "phase"});
  pod.finished = phase == "Succeeded" || phase == "Failed";
  const json* const spec = kube::find(object, {"spec"});
  if (pod.uid.empty() || spec == nullptr) return absl::InvalidArgumentError("the pod has no uid or no spec");
  const json* const host_network = kube::find(*spec, {"hostNetwork"});
  pod.host_network = host_network != nullptr && host_network->is_boolean() && host_network->get<bool>();

  GLN_ASSIGN_OR_RETURN(Requests requests, effective_requests(*spec));
  // Requests of the pod as a whole replace the sum.
  if (const json* whole = kube::find(*spec, {"resources", "requests"})) {
    GLN_ASSIGN_OR_RETURN(const Requests stated, parse_amounts(whole));
    if (whole->contains("cpu")) requests.cpus = stated.cpus;
    if (whole->contains("memory")) requests.memory_bytes = stated.memory_bytes;
  }
  GLN_ASSIGN_OR_RETURN(const Requests overhead, parse_amounts(kube::find(*spec, {"overhead"})));
  add(requests, overhead);
  pod.cpus = requests.cpus;
  pod.memory_bytes = requests.memory_bytes;
  return pod;
}

Requests owners_requests(const std::vector<PodOnNode>& pods) {
  Requests sum;
  for (const PodOnNode& pod : pods) {
    if (pod.summer || pod.finished) continue;
    sum.cpus += pod.cpus;
    sum.memory_bytes += pod.memory_bytes;
  }
  return sum;
}

}  // namespace gleaner::publish
