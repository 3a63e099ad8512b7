// Chooses the nodes to which an agent measures the bandwidth: a few pairs of each group (PLink, Luo's thesis §4.2.1).
// Pure.
//
// The *representatives* of a group are the kRepresentatives nodes with agents that have the least hash of group and
// node. They stay as they are while other nodes come and go. Only representatives measure. The i-th one of a group
// measures the next one of its own group, for reference, and the i-th one of up to kMostGroups other groups:
//
//   siblings  groups with the same parent, such as racks of one zone, show the group's own uplink
//   others    show the uplinks of parents. They get at least kLeastOthers places if there are as many
//
// A hash of the two names chooses among more groups, so two groups mostly choose each other.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "agent/probe/choose_peers.h"
#include "common/api/topology.h"

namespace gleaner::probe {

inline constexpr size_t kRepresentatives = 3;  // of a group
inline constexpr size_t kMostGroups = 8;       // that a representative measures, besides its own
inline constexpr size_t kLeastOthers = 2;      // of these with another parent

// Returns the nodes that the agent of `node` measures, the most important first: none if `node` is in no group or no
// representative. `host_of` has the address of the agent of each node with one, as far as they are known, with that of
// `node`.
std::vector<std::string> bandwidth_peers(const api::TopologyStatus& topology, const Texts& host_of,
                                         const std::string& node);

}  // namespace gleaner::probe
