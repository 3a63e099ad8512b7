// Router finds the paths of messages: shortest paths, chosen among equals by a hash of the message (ECMP, see
// common/topology/paths.h). Links may fail; then the remaining links decide which paths are shortest. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/topology/network.h"

namespace gleaner::netsim {

class Router {
 public:
  // `network` must outlive the object.
  explicit Router(const topology::Network& network)
      : network_(network), failed_(network.topology.links().size(), false) {}

  void fail(uint32_t link);
  bool has_failed(uint32_t channel) const { return failed_[channel / 2]; }

  // Replaces `channels` by those of a path, in order. Returns whether there is one.
  bool find(uint32_t from, uint32_t to, uint64_t hash, std::vector<uint32_t>& channels);

 private:
  // Returns the distance of each node to a host over the remaining links, by breadth-first search; kFar: no path.
  const std::vector<uint16_t>& hops_to(uint32_t host);
  // Returns whether paths may lead through a node.
  bool forwards(uint32_t node) const {
    return !network_.topology.is_host(node) || network_.topology.switches().empty();
  }

  const topology::Network& network_;
  std::vector<bool> failed_;  // by link
  bool any_failed_ = false;
  absl::flat_hash_map<uint32_t, std::vector<uint16_t>> hops_;  // by host, since the last failure
};

}  // namespace gleaner::netsim
