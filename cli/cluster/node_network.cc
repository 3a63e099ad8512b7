#include "cli/cluster/node_network.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/first_few.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/fabric/network.h"
#include "coordinator/roster/stand_in_bandwidth.h"

namespace gleaner::cli {

absl::StatusOr<NodeNetwork> network_of_nodes(const api::Topology& topology, std::vector<std::string> nodes,
                                             const std::vector<api::NodeProfile>& profiles) {
  if (nodes.empty()) return absl::FailedPreconditionError("the cluster has no nodes");
  absl::flat_hash_map<std::string, double> speeds;
  for (const api::NodeProfile& profile : profiles) speeds[profile.meta.name] = profile.status.bits_per_second;
  std::ranges::sort(nodes);
  std::vector<fabric::Host> hosts;
  std::vector<double> known;
  std::vector<std::string> unknown;
  for (const std::string& node : nodes) {
    const double bits = speeds[node];
    hosts.push_back({node, node, bits});
    if (bits > 0) {
      known.push_back(bits);
    } else {
      unknown.push_back(node);
    }
  }
  const double stand_in = coordinator::stand_in_bits_per_second(known);
  for (fabric::Host& host : hosts) {
    if (host.bits_per_second <= 0) host.bits_per_second = stand_in;
  }
  GLN_ASSIGN_OR_RETURN(topology::Topology network,
                       fabric::network_of(fabric::Fabric::of_status(topology.status), hosts));
  NodeNetwork made{std::move(network), ""};
  if (!unknown.empty()) {
    made.assumption =
        absl::StrCat("the network speed of ", first_few(unknown), " is unknown and taken to be ",
                     format_bits_per_second(stand_in), known.empty() ? "" : ", the median of the other nodes",
                     "; label these nodes ", api::kNodeBandwidthLabel, "=25Gbit, or give the agents --bandwidth");
  }
  return made;
}

}  // namespace gleaner::cli
