// Derives the usual latency between the nodes of each group from what agents measure between nodes
// (docs/agent.md#latencies). Pure.
//
// The latency of a group is that between two of its nodes that share no smaller group; the latency of the core is that
// between two nodes that share no group. It is the median over agents of the median of each agent's measurements. So
// an agent counts once for a group, however many measurements it states, and one that lies among three or more does not
// decide. Measurements by agents that are not plausible (latency_pairs.h) do not count, nor those of nodes without an
// agent, which may have left the cluster. Costs O(measurements * depth of the tree of groups).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/fabric/fabric.h"
#include "common/fabric/latency_pairs.h"

namespace gleaner::fabric {

// One way, in seconds; 0: unknown.
struct GroupLatencies {
  std::vector<double> of_groups;  // by group of the fabric
  double core = 0;
};

// `implausible`: names of nodes, ascending (NearNodes::implausible). Entries of profiles count while counts() says so.
GroupLatencies group_latencies(const Fabric& fabric, const Profiles& profiles, std::span<const std::string> implausible,
                               absl::Time now);

// Returns the latency that the Topology gets after `measured` was found: `before` if the two differ by a quarter at
// most, so that noise does not change the Topology each minute; else `measured` with two significant digits, in whole
// nanoseconds.
double settled_latency(double before, double measured);

}  // namespace gleaner::fabric
