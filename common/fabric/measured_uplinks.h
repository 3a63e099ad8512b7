// Derives the bandwidths of groups' uplinks from the bandwidths that agents measure between nodes (docs/agent.md).
// Pure.
//
// Agents measure one path at a time, so a measurement between two nodes is what the slowest of their own links and the
// uplinks between them carries. Others may use these links at the same time, so it is a lower bound. The uplink of a
// group is at least as fast as the fastest of the usual bandwidths to the other groups. Each agent counts once for two
// groups, however many measurements it states, so one that lies among three or more does not decide. Measurements of
// nodes in no group do not count.
//
// If that is about what nodes reach within groups, then the uplink is not slower than a node's link. How fast it is
// remains unknown, as one path at a time cannot tell: an uplink of 16 nodes may carry what two of them send.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "common/fabric/fabric.h"
#include "common/fabric/latency_pairs.h"

namespace gleaner::fabric {

// An uplink counts as slow if paths across it have less than this part of the bandwidth of those within groups.
inline constexpr double kSlowUplink = 0.9;

// Returns the bandwidth of the uplink of each group of the fabric in bit/s; 0: unknown. `profiles` tell the
// measurements and the nodes' own links. Entries count while counts() says so (latency_pairs.h).
std::vector<double> measured_uplinks(const Fabric& fabric, const Profiles& profiles, absl::Time now);

}  // namespace gleaner::fabric
