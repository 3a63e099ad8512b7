// Fabric is the network of a cluster's nodes: a tree of groups, such as zones and racks, with the cluster's core at its
// root. It follows from the labels of nodes, from measurements between them, and from the uplinks that an administrator
// states in the Topology.
//
// A group has the nodes with the same value of a level's label (common/placement/node_labels.h) and the same values of
// all wider levels. The narrowest level is kProbedLevel, whose values are the groups of near nodes that latencies tell
// (near_nodes.h). A level that does not divide the nodes of a group makes no groups in it, and a single node makes no
// group: its uplink would be the node's own link. Pure. Immutable once made, so safe for concurrent use.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "common/api/topology.h"
#include "common/placement/node_labels.h"

namespace gleaner::fabric {

using placement::kProbedLevel;

struct LabelledNode {
  std::string name;
  placement::LabelPath path;  // its values of the levels
  std::string near;           // its value of kProbedLevel; empty: none
};

class Fabric {
 public:
  // Returns the fabric of these nodes. `levels`: of labels, widest first.
  static Fabric of_labels(std::vector<LabelledNode> nodes, const placement::LabelLevels& levels,
                          std::span<const api::StatedUplink> uplinks);
  // Sets the bandwidth of each group's uplink that nobody has stated; 0: unknown (measured_uplinks.h).
  void set_measured_uplinks(std::span<const double> bits_per_second);
  // Sets the latencies between nodes, in seconds one way; 0: unknown (group_latencies.h).
  void set_latencies(std::span<const double> of_groups, double core);
  // Returns the fabric that the status of a Topology describes.
  static Fabric of_status(const api::TopologyStatus& status);

  // A group comes after its parent.
  const std::vector<api::TopologyGroup>& groups() const { return groups_; }
  uint32_t node_count() const { return node_count_; }
  // Returns the latency between two nodes that share no group, in seconds one way; 0: unknown.
  double core_latency_seconds() const { return core_latency_seconds_; }
  // Returns the index of the smallest group with this node; nullopt: none has it.
  std::optional<uint32_t> group_of(absl::string_view node) const;
  std::optional<uint32_t> parent_of(uint32_t group) const { return parents_[group]; }
  // Returns the levels of labels that make groups, widest first. Empty for a fabric of a status.
  const std::vector<placement::LabelLevel>& dividing_levels() const { return dividing_levels_; }
  // Returns whether the uplink is that of a group. A fabric of a status knows no stated uplink.
  bool matches(const api::StatedUplink& uplink) const;

 private:
  class Builder;

  std::vector<api::TopologyGroup> groups_;
  std::vector<std::optional<uint32_t>> parents_;               // by group
  absl::flat_hash_map<std::string, uint32_t> smallest_group_;  // by node
  uint32_t node_count_ = 0;
  double core_latency_seconds_ = 0;
  std::vector<placement::LabelLevel> dividing_levels_;
  std::vector<api::StatedUplink> matched_;  // stated uplinks of some group
};

}  // namespace gleaner::fabric
