// PodOnNode has the fields of a pod that its node's agent uses: its requests, and whether it is a summer.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gleaner::publish {

struct PodOnNode {
  std::string uid;
  bool summer = false;        // has the label gleaner.dev/role=summer
  bool host_network = false;  // uses the host's network
  bool finished = false;      // the pod's requests no longer count
  double cpus = 0;            // requested, counted as the scheduler does
  double memory_bytes = 0;
};

// Computes effective requests as Kubernetes does (KEP-753, KEP-2837): the sum of the containers, or the greatest init
// container if that is more. Sidecars (init containers with restartPolicy Always) and the overhead are added. Requests
// of the pod as a whole replace the sum of its containers.
absl::StatusOr<PodOnNode> parse_pod(const nlohmann::json& object);

struct Requests {
  double cpus = 0, memory_bytes = 0;
};
// Returns the requests of all pods that are neither finished nor summers.
Requests owners_requests(const std::vector<PodOnNode>& pods);

}  // namespace gleaner::publish
