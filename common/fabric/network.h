// network_of() makes the network of a job of the groups that divide its machines, for the models of strategies, rank
// maps and the simulator. Pure.
//
// Each branch has a latency D, that of its group (group_latencies.h). The path between two hosts has the D of the
// smallest branch that has both: the link of a host has half of the D of its branch, and the uplink of a branch half of
// the difference between the D of the next wider branch and its own, at least 0. An unknown D is that of the nearest
// wider branch with a known one, or else the greatest of the smaller branches.
//
// D is half of a round trip of small UDP packets between agents (docs/agent.md#latencies). It contains the network and
// the kernels' work to send and to receive, but not the time until a process wakes up. Ranks measure round trips by
// TCP, which contain about the same. strategy::network_of() adds only the difference of both longest round trips to the
// links of hosts, if that of the ranks is longer. So no part counts twice.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/fabric/fabric.h"
#include "common/topology/topology.h"

namespace gleaner::fabric {

// A machine of a job.
struct Host {
  std::string name;            // unique among the hosts: "worker-0"
  std::string node;            // a node that the fabric does not know is at the core
  double bits_per_second = 0;  // of its link, each way; above 0
};

inline constexpr char kCore[] = "core";              // the name of the switch above all groups
inline constexpr double kLinkLatencySeconds = 1e-6;  // of every link if no latency is known; an assumption

// Returns the network of the hosts: the switch kCore, and below it a switch with the name of its group for each branch
// of tree_of(). An uplink whose bandwidth is unknown carries `plenty` times all that the hosts below it send.
// InvalidArgument: as topology::Topology::make(), for example if two hosts have one name.
absl::StatusOr<topology::Topology> network_of(const Fabric& fabric, std::span<const Host> hosts, double plenty = 1);

// Returns the switch, by its index among those of a network of network_of(), at which a machine in these groups is:
// that of the narrowest of them which is a branch of the network, or kCore, 0, if none is. A host of the network is at
// this switch, too. `groups`: names, smallest group first (group_names_of()).
uint32_t switch_of(const topology::Topology& network, std::span<const std::string> groups);

// Returns the latency of the link that a further host at each switch of that network has.
std::vector<double> latencies_at_switches(const Fabric& fabric, std::span<const Host> hosts);

}  // namespace gleaner::fabric
