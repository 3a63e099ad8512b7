// gleaner topology: shows a topology, or writes it as a file that other commands read; shows the inside of a machine.
#pragma once

#include "absl/status/status.h"
#include "cli/topology_command_flags.h"

namespace gleaner::cli {

// Requires that the flags do not ask for a cluster.
absl::Status run_topology(const TopologyCommandFlags& flags);

}  // namespace gleaner::cli
