// Small topologies for the tests of common/netsim/.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "common/topology/builders.h"
#include "common/topology/network.h"

namespace gleaner::netsim {

// Returns the index of the link between two nodes, given by their names.
inline uint32_t link_between(const topology::Topology& topology, const std::string& a, const std::string& b) {
  for (uint32_t i = 0; i < topology.links().size(); ++i) {
    const topology::Link& link = topology.links()[i];
    const std::pair<std::string, std::string> ends = {topology.name(link.a), topology.name(link.b)};
    if (ends == std::pair(a, b) || ends == std::pair(b, a)) return i;
  }
  ADD_FAILURE() << "no link between " << a << " and " << b;
  return 0;
}

// Returns the map that places member or rank i on host i.
inline std::vector<uint32_t> identity(size_t count) {
  std::vector<uint32_t> map(count);
  std::iota(map.begin(), map.end(), 0);
  return map;
}

inline topology::LinkSpeed gbit(double host, double uplink = 0, double latency = 0) {
  return {.bits_per_second = host * 1e9, .uplink_bits_per_second = uplink * 1e9, .latency_seconds = latency};
}

// Two switches with two hosts each, joined by two other switches: two shortest paths between hosts of different
// switches.
inline absl::StatusOr<topology::Topology> two_paths() {
  std::vector<topology::Link> links;
  const auto join = [&](uint32_t a, uint32_t b) { links.push_back({a, b, 8e9, 8e9, 0}); };
  for (const auto& [host, at] : {std::pair(0, 4), {1, 4}, {2, 5}, {3, 5}}) join(host, at);
  for (const uint32_t middle : {6, 7}) {
    join(4, middle);
    join(middle, 5);
  }
  return topology::Topology::make({{"a", {}}, {"b", {}}, {"c", {}}, {"d", {}}},
                                  {{"left"}, {"right"}, {"middle-0"}, {"middle-1"}}, links);
}

}  // namespace gleaner::netsim
