// Functions that read and write Kubernetes' extender calls in JSON, with kube-scheduler's names. Source:
// k8s.io/kube-scheduler/extender/v1, types.go (v0.34).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/placement/fleet.h"

namespace gleaner::extender {

// ExtenderArgs.
struct Args {
  placement::Pod pod;              // role is empty unless the pod is a worker or summer of Gleaner
  bool by_name = true;             // true: NodeNames (nodeCacheCapable); false: Nodes
  std::vector<std::string> names;  // in both cases
  nlohmann::json nodes;            // NodeList; empty if by_name
};

// InvalidArgument: the body is not JSON or not an ExtenderArgs object; the message names the field.
absl::StatusOr<Args> parse_args(const std::string& body);

// Returns an ExtenderFilterResult. A node with a reason in `reasons` is reported as failed and unresolvable:
// kube-scheduler then does not try preemption there, since evicting pods would not help.
std::string filter_result(Args args, const std::vector<std::string>& reasons);

// Returns a HostPriorityList.
std::string host_priorities(const std::vector<std::string>& names, const std::vector<int>& scores);

}  // namespace gleaner::extender
