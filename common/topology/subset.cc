#include "common/topology/subset.h"

#include <utility>
#include <vector>

namespace gleaner::topology {

absl::StatusOr<Topology> subset(const Topology& topology, std::span<const uint32_t> hosts) {
  constexpr uint32_t kLeftOut = UINT32_MAX;
  std::vector<uint32_t> index_of(topology.node_count(), kLeftOut);
  std::vector<Host> kept;
  for (const uint32_t host : hosts) {
    index_of[host] = static_cast<uint32_t>(kept.size());
    kept.push_back(topology.hosts()[host]);
  }
  for (uint32_t node = topology.host_count(); node < topology.node_count(); ++node) {
    index_of[node] = static_cast<uint32_t>(kept.size()) + node - topology.host_count();
  }
  std::vector<Link> links;
  for (Link link : topology.links()) {
    link.a = index_of[link.a];
    link.b = index_of[link.b];
    if (link.a != kLeftOut && link.b != kLeftOut) links.push_back(link);
  }
  return Topology::make(std::move(kept), topology.switches(), std::move(links));
}

}  // namespace gleaner::topology
