// Makes the output of `gleaner topology` for a cluster: the groups of its nodes, and what is assumed of them. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/api/node_profile.h"
#include "common/api/topology.h"

namespace gleaner::cli {

// Returns the tree of groups as a table with the speeds of the nodes' links and of the groups' uplinks and the
// latencies between nodes, and then unmet_conditions() with advice. `profiles` may be an error: the speeds of links are
// then unknown, and the text says why.
std::string topology_text(const api::Topology& topology, const absl::StatusOr<std::vector<api::NodeProfile>>& profiles);

// Returns a sentence for each condition that is False: "Ready is False, since no label tells the 3 nodes apart".
std::vector<std::string> unmet_conditions(const api::Topology& topology);

}  // namespace gleaner::cli
