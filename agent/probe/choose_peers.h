// Chooses the agents that an agent measures. Pure.
//
// With up to kMostPeers other agents it measures all. With more it measures all of its own *group* of near nodes, or
// most of them if the group is large, and a few of each other group: so each group is measured well, and the distances
// between groups are, too, though nobody measures all pairs. Groups within the same wider group come first, since they
// may turn out to be one. A node that is in no smaller group of a divided one measures a few of each of these groups,
// to find its own. Without groups an agent measures kMostPeers others at random.
//
// A hash of the two addresses decides between agents that suit equally well. So two agents mostly choose each other,
// and a choice stays as it is while other agents come and go.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "agent/probe/rounds.h"
#include "common/api/topology.h"

namespace gleaner::probe {

inline constexpr size_t kMostPeers = 64;    // that an agent measures
inline constexpr size_t kLeastAcross = 16;  // of these in other groups, if there are as many

// The need that an agent has for another. kName: the name of its node alone, which tells its group.
enum class Need { kNothing, kName, kLatency };

using Texts = absl::flat_hash_map<std::string, std::string>;

// Returns the smallest group of each node that is in one, by the node's name.
Texts group_of_nodes(const api::TopologyStatus& topology);

// Returns the need for each of the agents. `node_of` has the names of nodes by host, as far as they are known, with
// that of this agent.
std::vector<Need> choose_peers(const AgentOrder& agents, const Texts& node_of, const Texts& group_of);

}  // namespace gleaner::probe
