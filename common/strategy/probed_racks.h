// The racks of a network of which only probes between its hosts are known. Probes say how far each two hosts are from
// each other, but not which pairs share a link. tree_of_probes() finds groups of near hosts, and makes the tree of
// switches that explains why they are near: hosts of a group share a rack, whose uplink is as fast as the probes across
// racks. So strategies, rank maps and bounds see the racks of a cloud that does not tell them. Pure.
//
// 1. The distance of two hosts is the time of a message between them, latency and bytes / bandwidth, so that the
//    measure which tells hosts apart counts, whichever it is. The message has 64 KiB.
// 2. The groups of near hosts are those that explain the distances best (common/ranks/near_groups.h). All hosts are at
//    one switch if nothing tells them apart, if their own links say as much, or if it is not sure which groups are
//    right.
// 3. If the number of groups is given, hosts are embedded by their distances and divided by k-means
//    (common/ranks/grouping.h, Luo §4.2.1), and change places while that explains the distances better.
// 4. Probes run one at a time, so what they measure across two racks is what the slower uplink carries, unless it is
//    about as much as within racks. An uplink then carries all that the hosts of its rack can send.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/topology/topology.h"

namespace gleaner::strategy {

struct ProbedTree {
  topology::Topology topology;
  bool unsure =
      false;  // probes tell hosts apart, but no grouping has ranks::kLeastConfidence: all hosts are at one switch
};

// Returns the tree that a topology of probes (topology::is_of_probes()) suggests, with the same hosts. Groups are those
// of hosts 0 to `workers` - 1; each further host is in the rack that is nearest to it. `groups`: the number of groups,
// whose sizes then differ by one at most; 0: the one that explains the probes best. InvalidArgument: there are fewer
// hosts than workers, or than groups.
absl::StatusOr<ProbedTree> tree_of_probes(const topology::Topology& probes, uint32_t workers, uint32_t groups = 0);

// Says, for a log or standard error, why an unsure tree has one switch, and what to do.
inline constexpr absl::string_view kUnsureGroups =
    "not sure: hosts are not equally near, but measurements differ too much to tell which are; all count as equally "
    "near. Probe again without other traffic";

}  // namespace gleaner::strategy
