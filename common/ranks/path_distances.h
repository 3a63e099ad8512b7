// Distances between the hosts of a topology, for grouping. Pure.
#pragma once

#include "common/ranks/embedding.h"
#include "common/topology/network.h"

namespace gleaner::ranks {

// Returns the latency of the path between each two hosts, in seconds, or, if all latencies are equal, the inverse of
// the least bandwidth on the path (Luo §4.2.1: both measure distance).
Distances path_distances(const topology::Network& network);

}  // namespace gleaner::ranks
