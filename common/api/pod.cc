#include "common/api/pod.h"

#include <algorithm>

#include "common/api/fields.h"
#include "common/base/status_macros.h"

namespace gleaner::api {
namespace {

// More than any machine has, and within uint64_t.
constexpr double kMostMemory = 1e18;

struct Sum {
  double cpus = 0, memory_bytes = 0;
};

Requests to_requests(const Sum& sum) {
  return {sum.cpus, static_cast<uint64_t>(std::clamp(sum.memory_bytes, 0.0, kMostMemory))};
}

void read_requests(const Fields& resources, Sum& sum) {
  const Fields requests = resources.object("requests");
  requests.quantity("cpu", sum.cpus);
  requests.quantity("memory", sum.memory_bytes);
}

}  // namespace

absl::StatusOr<Requests> parse_requests(const nlohmann::json& resources) {
  if (!resources.is_object()) return Requests{};
  absl::Status status;
  Sum sum;
  read_requests(Fields(resources, "resources", status), sum);
  if (!status.ok()) return status;
  return to_requests(sum);
}

absl::StatusOr<Requests> total_requests(const nlohmann::json& pod_spec) {
  absl::Status status;
  std::vector<Sum> containers;
  Fields(pod_spec, "spec", status).list("containers", containers, [](const Fields& container, Sum& read) {
    read_requests(container.object("resources"), read);
  });
  if (!status.ok()) return status;
  Sum total;
  for (const Sum& container : containers) {
    total.cpus += container.cpus;
    total.memory_bytes += container.memory_bytes;
  }
  return to_requests(total);
}

double bandwidth_limit(const ObjectMeta& meta) {
  double lowest = 0;
  for (const char* name : {"kubernetes.io/egress-bandwidth", "kubernetes.io/ingress-bandwidth"}) {
    const auto annotation = meta.annotations.find(name);
    if (annotation == meta.annotations.end()) continue;
    const auto limit = parse_quantity(annotation->second);
    if (limit.ok() && *limit > 0) lowest = lowest == 0 ? *limit : std::min(lowest, *limit);
  }
  return lowest;
}

}  // namespace gleaner::api
