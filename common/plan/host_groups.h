// Trees of groups of nodes, for bounds by cuts: the hosts of a group exchange bytes with other hosts only over the
// links with one end in the group, its *boundary*. Pure.
//
// The groups of a tree are nested or disjoint. The first one is the whole network, which has no boundary. Each host is
// a group of its own, without groups inside. So every set of disjoint groups that together hold all hosts is a
// partition of the hosts.
#pragma once

#include <cstdint>
#include <vector>

#include "common/topology/topology.h"

namespace gleaner::plan {

struct HostGroup {
  uint32_t parent = 0;             // the least group around this one, which comes before it; of the first one: itself
  uint32_t node = 0;               // the host, or a switch of the group that names it
  double out_bits_per_second = 0;  // of the boundary, out of the group
  double in_bits_per_second = 0;
};

struct GroupTree {
  std::vector<HostGroup> groups;
  std::vector<uint32_t> group_of_host;  // the group that is this host alone
};

// Returns the groups that a single switch parts from the rest: if the links form a tree, all that is behind one link.
// A group's `node` is its end of a link to that switch. Cost: O(nodes + links).
GroupTree groups_behind_switches(const topology::Topology& topology);

// Returns the groups by height, which is the distance to the nearest host: each switch with its own hosts (of a host
// with several switches: the first one), then the connected parts of the nodes up to height 1, 2 and so on, such as the
// pods of a fat tree. A part's `node` is its first switch. Cost: O(links) for each height at which parts join; of
// these, the first 16 count.
GroupTree groups_by_height(const topology::Topology& topology);

}  // namespace gleaner::plan
