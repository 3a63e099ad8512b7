// Routes finds the paths of messages: shortest paths, chosen among equals by a hash of the message (ECMP, see
// common/topology/paths.h). Links may fail; then the remaining links decide which paths are shortest. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/topology/paths.h"
#include "common/topology/topology.h"

namespace gleaner::netsim {

class Routes {
 public:
  // Both arguments must outlive the object.
  Routes(const topology::Topology& topology, const topology::Paths& paths)
      : topology_(topology), paths_(paths), failed_(topology.links().size(), false) {}

  void fail(uint32_t link);
  bool has_failed(uint32_t channel) const { return failed_[channel / 2]; }

  // Replaces `channels` by those of a path, in order. Returns whether there is one.
  bool find(uint32_t from, uint32_t to, uint64_t hash, std::vector<uint32_t>& channels);

 private:
  // Returns the distance of each node to a host over the remaining links, by breadth-first search; kFar: no path.
  const std::vector<uint16_t>& hops_to(uint32_t host);
  // Returns whether paths may lead through a node.
  bool forwards(uint32_t node) const { return !topology_.is_host(node) || topology_.switches().empty(); }

  const topology::Topology& topology_;
  const topology::Paths& paths_;
  std::vector<bool> failed_;  // by link
  bool any_failed_ = false;
  absl::flat_hash_map<uint32_t, std::vector<uint16_t>> hops_;  // by host, since the last failure
};

}  // namespace gleaner::netsim
