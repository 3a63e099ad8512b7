// Finds groups of near nodes by the latencies between them, where no label tells them apart, and the labels that
// latencies contradict. Pure.
//
// Nodes with equal values of all levels' labels are a *set*, which may have several groups. Where the latencies of all
// pairs of a set are known, ranks::sure_groups() finds the groups; else ranks::linked_groups() does, from those that
// are. A set keeps its groups of before while nothing better is known: while less than half of it is measured, or if it
// is not sure which groups are right. A set of fewer than four nodes has no groups. A node with few latencies keeps its
// group of before, and does not hold up the others. A node that is near no other one is in no group. A group keeps its
// name while nodes come and go.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "common/fabric/fabric.h"
#include "common/fabric/latency_pairs.h"

namespace gleaner::fabric {

struct NearNodes {
  absl::flat_hash_map<std::string, std::string> group_of;  // name of the group by node: "near-" and a node
  size_t measured = 0;                                     // number of nodes with a latency

  // Sorted names of nodes.
  std::vector<std::string> unmeasured;   // without any latency, though others have some
  std::vector<std::string> implausible;  // LatencyPairs::implausible
  std::vector<std::string> mislabelled;  // nearer to nodes with other labels than to those with its own
  std::vector<std::string> unsure;       // of sets in which it is not sure who is near
  bool operator==(const NearNodes&) const = default;
};

// `nodes`: with labels; LabelledNode::near does not count. `before`: groups of before, by node.
NearNodes find_near_nodes(std::span<const LabelledNode> nodes, const Profiles& profiles,
                          const absl::flat_hash_map<std::string, std::string>& before, absl::Time now);

}  // namespace gleaner::fabric
