// Functions that build regular topologies. Host i of every topology is named "host-i". InvalidArgument names the
// parameter that is out of range and says what fits.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/topology/topology.h"

namespace gleaner::topology {

struct LinkSpeed {
  double bits_per_second = 100e9;     // of each host's link, each way
  double uplink_bits_per_second = 0;  // of links between switches, each way; 0: the builder's default
  double latency_seconds = 1e-6;      // of every link
  double overhead_seconds = 0;        // of each host, for a message
};

// One switch and `hosts` hosts. place = {port}.
absl::StatusOr<Topology> star(uint32_t hosts, const LinkSpeed& speed);

// `racks` switches with `hosts` hosts each, below one core switch. The default uplink carries all hosts of a rack at
// full speed; a slower one is oversubscribed. place = {rack, slot}.
absl::StatusOr<Topology> racks(uint32_t racks, uint32_t hosts, const LinkSpeed& speed);

// The k-ary fat tree: k pods of k/2 edge and k/2 aggregation switches, (k/2)² core switches, k³/4 hosts. k is even,
// 64 at most.
// The default uplink is as fast as a host's link. place = {pod, edge switch, port}.
absl::StatusOr<Topology> fat_tree(uint32_t k, const LinkSpeed& speed);

// BiGraph (EFLOPS §IV-B): `switches` switches on two sides, one link between each two switches of different sides, and
// `hosts` hosts at every switch. `switches` is even. The path between two hosts of different sides is unique. The
// default uplink is as fast as a host's link. place = {side, switch of that side, port}.
absl::StatusOr<Topology> bigraph(uint32_t hosts, uint32_t switches, const LinkSpeed& speed);

}  // namespace gleaner::topology
