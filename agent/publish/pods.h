// What of a pod matters to its node: what it has requested, and whether it is one of ours.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gleaner::publish {

struct PodOnNode {
  std::string uid;
  bool summer = false;        // label gleaner.dev/role=summer
  bool host_network = false;  // no network of its own
  bool finished = false;      // its requests are free again
  double cpus = 0;            // requested, as the scheduler counts
  double memory_bytes = 0;
};

// Requests are those of the containers, or of the greatest init container if that is more, with sidecars (init
// containers that are restarted always) and the overhead added, unless the pod as a whole says what it requests.
// Source: Kubernetes' rules for effective requests (KEP-753, KEP-2837).
absl::StatusOr<PodOnNode> parse_pod(const nlohmann::json& object);

struct Requests {
  double cpus = 0, memory_bytes = 0;
};
// Of all that run and are not summers.
Requests owners_requests(const std::vector<PodOnNode>& pods);

}  // namespace gleaner::publish
