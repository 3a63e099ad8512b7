// Summarizes a topology for a reader: its farthest hosts, where its switches are oversubscribed, and its kinds of
// links. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/topology/network.h"
#include "common/topology/topology.h"

namespace gleaner::topology {

// Two hosts whose shortest path has the most links.
struct Farthest {
  uint32_t from = 0, to = 0;
  uint32_t hops = 0;
  uint64_t paths = 0;          // the number of shortest paths between them; UINT64_MAX: that many or more
  double latency_seconds = 0;  // of the path of flow 0, one way
};

// The switch at which hosts send the most, in proportion to the links that lead to other switches.
struct Oversubscription {
  uint32_t node = 0;
  double host_bits_per_second = 0;    // of all links from hosts to the switch
  double uplink_bits_per_second = 0;  // of all links from the switch to other switches
  double ratio() const { return host_bits_per_second / uplink_bits_per_second; }
};

// Links between the same two tiers with equal speeds. Where there would be more than eight classes between two tiers,
// one class has all of those links.
struct LinkClass {
  struct Range {
    double least = 0, most = 0;
  };
  uint32_t lower = 0, upper = 0;  // tiers (common/topology/tiers.h)
  uint64_t count = 0;
  Range up, down;  // bits per second, towards the upper tier and back; between equal tiers from a link's a to its b
  Range latency_seconds;
  uint32_t example = 0;  // index of a link
};

struct Summary {
  std::optional<Farthest> farthest;                  // nothing if there is one host
  std::optional<Oversubscription> oversubscription;  // nothing if no switch joins hosts to other switches
  std::vector<LinkClass> classes;                    // by tiers, then in the order of links
};

Summary summarize(const Network& network);

// Returns the summary as text: a line for each figure, then a table of the classes.
std::string to_table(const Topology& topology, const Summary& summary);

}  // namespace gleaner::topology
