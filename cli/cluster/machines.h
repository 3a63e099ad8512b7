// Reads, once, all machines of the cluster and the pods of all jobs, or the network of the cluster.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "cli/cluster/access.h"
#include "common/fabric/fabric.h"
#include "common/placement/fleet.h"

namespace gleaner::cli {

struct ReadMachines {
  placement::Fleet fleet{placement::Fleet::Taints::kRefuse};
  std::vector<placement::Pod> pods;  // the pods of all jobs
};
absl::StatusOr<ReadMachines> read_machines(ClusterAccess& access);

// Reads the network of the cluster, which has no groups if no operator has written the Topology.
absl::StatusOr<fabric::Fabric> read_fabric(ClusterAccess& access);

}  // namespace gleaner::cli
