// Reads, once, all machines of the cluster and the pods of all jobs.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "cli/cluster/access.h"
#include "common/placement/fleet.h"

namespace gleaner::cli {

struct ReadMachines {
  placement::Fleet fleet{placement::Fleet::Taints::kRefuse};
  std::vector<placement::Pod> pods;  // the pods of all jobs
};
absl::StatusOr<ReadMachines> read_machines(ClusterAccess& access);

}  // namespace gleaner::cli
