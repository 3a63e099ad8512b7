// Paths finds the shortest paths between the hosts of a topology: those with the fewest links. Where several are
// equally short, a hash chooses one for each flow at each node, as equal-cost multi-path routing (ECMP) does. A path
// leads through a host only if the topology has no switch. Pure. Safe for concurrent use.
//
// A *leaf* is a host with one link, to a switch. All leaves of a switch have the same paths, but for their own link, so
// distances are kept between *inner nodes*, which are all other nodes. The object holds two bytes for each pair of an
// inner node and an inner node that is a host or has leaves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/topology/topology.h"

namespace gleaner::topology {

class Paths {
 public:
  // Computes the distances.
  explicit Paths(const Topology& topology);

  // Returns the number of links of a shortest path between two hosts.
  uint32_t hops(uint32_t from, uint32_t to) const;
  // Returns the number of shortest paths between two hosts. UINT64_MAX: there are that many or more.
  uint64_t count(uint32_t from, uint32_t to) const;
  bool is_unique(uint32_t from, uint32_t to) const { return count(from, to) == 1; }

  // Appends the channels of one shortest path, in order. Equal values of `flow` take equal paths; different ones are
  // spread over the shortest paths. Appends nothing if from == to.
  void append_path(uint32_t from, uint32_t to, uint64_t flow, std::vector<uint32_t>& channels) const;

 private:
  // A channel between two inner nodes, as its first node sees it.
  struct Step {
    uint32_t inner = 0;  // index of an inner node
    uint32_t channel = 0;
  };
  // The shortest paths to one inner node.
  struct Target {
    uint32_t inner = 0;
    const uint16_t* hops = nullptr;  // by inner node
  };

  void find_inner_nodes(const Topology& topology);
  void index_steps(const Topology& topology);
  void measure(uint32_t inner, uint16_t* hops, std::vector<uint32_t>& queue) const;

  bool is_leaf(uint32_t host) const { return uplink_[host] != kNoChannel; }
  bool forwards(uint32_t inner) const { return hosts_forward_ || node_[inner] >= hosts_; }
  // Returns the target for paths to a host: the host itself, or the switch of a leaf.
  Target target(uint32_t host) const { return {inner_[host], &hops_[size_t{row_[host]} * node_.size()]}; }
  // Returns whether a shortest path to the target leads from `inner` to `next`.
  bool leads(const Target& target, uint32_t inner, uint32_t next) const;
  std::span<const Step> steps(uint32_t inner) const;

  static constexpr uint32_t kNoChannel = UINT32_MAX;

  uint32_t hosts_;
  bool hosts_forward_;
  std::vector<uint32_t> node_;    // by inner node: its index in the topology
  std::vector<uint32_t> inner_;   // by node: its index among inner nodes; of a leaf: that of its switch
  std::vector<uint32_t> uplink_;  // by host: the channel from a leaf to its switch; kNoChannel for other hosts
  std::vector<uint32_t> row_;     // by host: the row of hops_ with the distances to target(host)
  std::vector<uint32_t> first_;   // by inner node: its first element of steps_; one more at the end
  std::vector<Step> steps_;
  std::vector<uint16_t> hops_;  // by row, then inner node
};

}  // namespace gleaner::topology
