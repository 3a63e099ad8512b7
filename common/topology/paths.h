// Paths finds the shortest paths between the hosts of a topology: those with the fewest links. Where several are
// equally short, a hash chooses one for each flow at each node, as equal-cost multi-path routing (ECMP) does. A path
// leads through a host only if the topology has no switch. Pure. Safe for concurrent use. Holds two bytes for each pair
// of a node and a host.
#pragma once

#include <cstdint>
#include <vector>

#include "common/topology/topology.h"

namespace gleaner::topology {

class Paths {
 public:
  // Computes the distance of each node to each host. `topology` must outlive the object.
  explicit Paths(const Topology& topology);

  // Returns the number of links of a shortest path between two hosts.
  uint32_t hops(uint32_t from, uint32_t to) const { return hops_to(to, from); }
  // Returns the number of shortest paths between two hosts. UINT64_MAX: there are that many or more.
  uint64_t count(uint32_t from, uint32_t to) const;
  bool is_unique(uint32_t from, uint32_t to) const { return count(from, to) == 1; }

  // Appends the channels of one shortest path, in order. Equal values of `flow` take equal paths; different ones are
  // spread over the shortest paths. Appends nothing if from == to.
  void append_path(uint32_t from, uint32_t to, uint64_t flow, std::vector<uint32_t>& channels) const;

 private:
  uint16_t hops_to(uint32_t host, uint32_t node) const { return hops_[size_t{host} * nodes_ + node]; }
  // Returns whether a shortest path to `host` leads from `node` to `next`.
  bool leads(uint32_t host, uint32_t node, uint32_t next) const;
  void measure(uint32_t host, std::vector<uint32_t>& queue);

  const Topology& topology_;
  const uint32_t nodes_;
  std::vector<uint16_t> hops_;  // by host, then node
};

}  // namespace gleaner::topology
