// Kubernetes' extender calls as JSON, with the names that kube-scheduler uses.
// Source: k8s.io/kube-scheduler/extender/v1, types.go (v0.34).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/placement/fleet.h"

namespace gleaner::extender {

// ExtenderArgs.
struct Args {
  placement::Pod pod;              // role is empty unless it is a worker or summer of ours
  bool by_name = true;             // NodeNames (nodeCacheCapable); false: Nodes
  std::vector<std::string> names;  // either way
  nlohmann::json nodes;            // NodeList, if not by_name
};

// InvalidArgument, with the place, if it isn't JSON, or isn't ExtenderArgs.
absl::StatusOr<Args> parse_args(const std::string& body);

// ExtenderFilterResult. A node with a reason in `why_not` failed, and evicting pods from it would not help: preemption
// must not try.
std::string filter_result(Args args, const std::vector<std::string>& why_not);

// HostPriorityList.
std::string host_priorities(const std::vector<std::string>& names, const std::vector<int>& scores);

}  // namespace gleaner::extender
