// Makes the network of a cluster's nodes from its Topology, as a file that other commands read. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/api/node_profile.h"
#include "common/api/topology.h"
#include "common/topology/topology.h"

namespace gleaner::cli {

struct NodeNetwork {
  topology::Topology network;
  std::string assumption;  // the speed that links of unknown speed got, and whose they are; empty: all are known
};

// Returns the network of these nodes, as fabric::network_of(), with them as hosts in alphabetical order. A node whose
// NodeProfile is absent or has no speed gets the median of the others, or 10 Gbit/s if none is known. Errors:
// FailedPrecondition if there are no nodes; those of fabric::network_of().
absl::StatusOr<NodeNetwork> network_of_nodes(const api::Topology& topology, std::vector<std::string> nodes,
                                             const std::vector<api::NodeProfile>& profiles);

}  // namespace gleaner::cli
