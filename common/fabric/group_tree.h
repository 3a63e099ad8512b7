// GroupTree is the part of a fabric that divides the hosts of a job: the groups with some but not all of the hosts
// below their parent. Groups with the same hosts as their parent are left out; their uplinks are joined, and the
// latency of the narrowest one counts. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/fabric/fabric.h"

namespace gleaner::fabric {

// Returns the groups with this node, smallest first.
std::vector<uint32_t> groups_of(const Fabric& fabric, absl::string_view node);

// Returns the names of the groups with this node, smallest group first.
std::vector<std::string> group_names_of(const Fabric& fabric, absl::string_view node);

struct GroupTree {
  struct Branch {
    std::optional<uint32_t> group;      // index in the fabric, the widest one with these hosts; nullopt: the root
    double uplink_bits_per_second = 0;  // the slowest stated uplink of the groups with these hosts; 0: none is known
    std::vector<uint32_t> hosts;        // places of the hosts in no smaller branch, ascending
    std::vector<uint32_t> branches;     // indexes of the next smaller branches
    uint32_t first = 0;                 // the least place of a host in it or in a smaller branch
    // One way, between two of the hosts that share no smaller branch: that of the narrowest group with these hosts, or
    // if it is unknown, of the nearest wider group or the core. 0: none of these is known.
    double latency_seconds = 0;
  };
  // Branch 0 is the root, which has all hosts.
  std::vector<Branch> branches;
};

// Returns the tree of these hosts, of which host i runs on nodes[i]. Nodes that the fabric does not know are at the
// root.
GroupTree tree_of(const Fabric& fabric, std::span<const std::string> nodes);

// Hosts of one branch that are in no smaller branch.
struct HostGroup {
  std::optional<uint32_t> group;  // as in GroupTree::Branch
  double uplink_bits_per_second = 0;
  std::vector<uint32_t> hosts;
  bool operator==(const HostGroup&) const = default;
};

// Returns the hosts in an order in which those of each branch, with those of its smaller branches, are consecutive.
// Branches come in the order of their first hosts. A single entry: the fabric does not divide the hosts.
std::vector<HostGroup> near_first(const GroupTree& tree);

}  // namespace gleaner::fabric
