// What several readers want to know of a corev1 Pod.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "operator/types/meta.h"

namespace gleaner::types {

struct Requests {
  double cpus = 0;
  uint64_t memory_bytes = 0;
};
// Of one container's ResourceRequirements. InvalidArgument names what is malformed.
absl::StatusOr<Requests> parse_requests(const nlohmann::json& resources);
// Of all containers of a pod's spec together.
absl::StatusOr<Requests> total_requests(const nlohmann::json& pod_spec);

// The lower of what a pod may send and receive, by the annotations that CNI's bandwidth plugin reads, in bits per
// second; 0: neither is limited. A malformed annotation limits nothing here: its pod won't get a network, and the
// kubelet says why.
double bandwidth_limit(const ObjectMeta& meta);

}  // namespace gleaner::types
