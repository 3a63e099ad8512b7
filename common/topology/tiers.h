// Tiers order the nodes of a topology for tables and drawings. Hosts are tier 0. The tier of a switch is the number of
// links from it to the nearest host, on paths through switches. A switch that no host reaches has the tier above all
// others. In a fat tree edge, aggregation and core switches are the tiers 1, 2 and 3. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "common/topology/topology.h"

namespace gleaner::topology {

// Returns the tier of each node.
std::vector<uint32_t> tiers(const Topology& topology);

// Returns for each node on which of two sides it is (0 or 1), if every switch has hosts and every link between switches
// joins the two sides, as in a BiGraph; a host is on the side of its switch. Otherwise, or if there is only one side,
// returns an empty list. The first switch is on side 0.
std::vector<uint32_t> sides(const Topology& topology);

}  // namespace gleaner::topology
