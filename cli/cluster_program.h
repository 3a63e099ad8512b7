// Replaces `gleaner` by the program `gleaner-cluster` (cli/cluster/main.cc), which is installed beside it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/cluster_flags.h"
#include "cli/topology_command_flags.h"

namespace gleaner::cli {

// Runs gleaner-cluster in place of this process, with the same command line, and returns only if it cannot be run.
// Errors: FailedPrecondition, which says how to get the program; those of own_program().
absl::Status run_cluster_program(const std::vector<std::string>& arguments);

// Carries out `gleaner status`: for a local job itself; by gleaner-cluster if the user asks for a cluster, or if there
// is one. Otherwise, or if gleaner-cluster cannot be run, it lists this machine's jobs.
absl::Status run_status(const ClusterFlags& flags, const std::vector<std::string>& arguments);

// Carries out `gleaner topology` of a cluster by gleaner-cluster. Errors: InvalidArgument if there is no cluster, since
// the user may have forgotten TOPOLOGY; those of check() and run_cluster_program().
absl::Status run_cluster_topology(const TopologyCommandFlags& flags, const std::vector<std::string>& arguments);

}  // namespace gleaner::cli
