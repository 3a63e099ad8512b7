// Network is a topology together with the shortest paths between its hosts, for readers that follow the links of a
// path. Pure. Safe for concurrent use.
#pragma once

#include "common/topology/paths.h"
#include "common/topology/topology.h"

namespace gleaner::topology {

struct Network {
  Topology topology;
  Paths paths;  // those of `topology`
};

// Finds the paths of a topology.
Network make_network(Topology topology);

}  // namespace gleaner::topology
