// The flags of `gleaner topology`.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/cluster_flags.h"
#include "cli/commands.h"
#include "cli/topology_flags.h"
#include "common/topology/topology.h"

namespace gleaner::cli {

struct TopologyCommandFlags {
  ClusterFlags cluster;                           // its connection
  TopologyFlags topology = {.name = "TOPOLOGY"};  // without a text: of the cluster, or with `machine` this machine
  std::string output = "table";
  bool groups = false;
  bool machine = false;  // TOPOLOGY is the file of a machine
};

// Adds the command `topology`. `action` carries it out.
void add_topology(flags::Command& app, Context& context,
                  std::function<absl::Status(const TopologyCommandFlags&)> action);

// Returns whether the user asks for the topology of a cluster.
bool is_of_cluster(const TopologyCommandFlags& flags);

// Returns InvalidArgument if flags exclude each other.
absl::Status check(const TopologyCommandFlags& flags);

// Returns the topology as --output says. Errors: InvalidArgument, if it is too large for a drawing.
absl::StatusOr<std::string> output_of(const TopologyCommandFlags& flags, topology::Topology topology);

}  // namespace gleaner::cli
