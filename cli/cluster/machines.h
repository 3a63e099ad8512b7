// All machines of the cluster, read once.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "cli/cluster/access.h"
#include "operator/placement/fleet.h"

namespace gleaner::cli {

struct ReadMachines {
  placement::Fleet fleet{placement::Fleet::Taints::kRefuse};
  std::vector<placement::Pod> pods;  // of all jobs
};
absl::StatusOr<ReadMachines> read_machines(ClusterAccess& access);

}  // namespace gleaner::cli
