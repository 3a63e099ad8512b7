// Functions that read requests and bandwidth limits of corev1 Pods.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "common/api/meta.h"

namespace gleaner::api {

struct Requests {
  double cpus = 0;
  uint64_t memory_bytes = 0;
};
// Returns the requests in one container's ResourceRequirements. InvalidArgument names the malformed field.
absl::StatusOr<Requests> parse_requests(const nlohmann::json& resources);
// Returns the sum of the requests of all containers in a pod's spec.
absl::StatusOr<Requests> total_requests(const nlohmann::json& pod_spec);

// Returns the lower of a pod's limits for sending and receiving, in bits per second, from the annotations of CNI's
// bandwidth plugin; 0 if it has none. Ignores a malformed annotation: its pod gets no network, and the kubelet reports
// the reason.
double bandwidth_limit(const ObjectMeta& meta);

}  // namespace gleaner::api
