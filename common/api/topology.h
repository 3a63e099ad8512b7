// Topology, gleaner.dev/v1alpha1, is the network of the cluster: which nodes are near each other, and how fast the
// links between groups of nodes are.
//
// crds/topology.yaml is the only source of the schema. There is one Topology, kTopologyName, cluster scoped.
// Administrators may write its spec; the operator writes its status. It lists groups and their nodes, not pairs of
// nodes, so that it stays small in a cluster of thousands of nodes.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/api/meta.h"

namespace gleaner::api {

inline constexpr char kTopologyName[] = "cluster";

// The source of an uplink's bandwidth. Assumed: nothing tells it, so it is taken to carry all that the group's nodes
// send.
enum class UplinkSource { kAssumed, kStated, kProbes };

// The bandwidth of the uplinks of some groups, as an administrator states it.
struct StatedUplink {
  std::string level;           // label key of the groups' level
  std::string group;           // the label's value; empty: all groups of the level
  double bits_per_second = 0;  // each way
  bool operator==(const StatedUplink&) const = default;
};

// Nodes that share the value of a label, or that are near each other by their latencies, and share the values of all
// wider levels.
struct TopologyGroup {
  std::string name;                   // the values of its levels, widest first: "zone-a/rack-1"; unique
  std::string level;                  // the label's key, or fabric::kProbedLevel
  std::string parent;                 // name of the next wider group; empty: none
  std::vector<std::string> nodes;     // those in no smaller group, in alphabetical order
  uint32_t node_count = 0;            // with those of smaller groups
  double uplink_bits_per_second = 0;  // each way, between this group and the rest; 0: unknown (kAssumed)
  UplinkSource uplink_source = UplinkSource::kAssumed;
  double latency_seconds = 0;  // one way, between two nodes that share no smaller group; 0: unknown
  bool operator==(const TopologyGroup&) const = default;
};

struct TopologyStatus {
  uint32_t node_count = 0;            // of the cluster, with nodes in no group
  std::vector<TopologyGroup> groups;  // a group comes after its parent
  std::vector<Condition> conditions;  // Ready, UplinksKnown, NodesMeasured, LatenciesAgree
  double latency_seconds = 0;         // one way, between two nodes that share no group; 0: unknown
  bool operator==(const TopologyStatus&) const = default;
};

struct Topology {
  ObjectMeta meta;
  std::vector<StatedUplink> uplinks;  // spec.uplinks; a later one takes precedence
  TopologyStatus status;
  bool operator==(const Topology&) const = default;
};

absl::string_view name_of(UplinkSource source);  // "Assumed", as in the schema

absl::StatusOr<Topology> parse_topology(const nlohmann::json& object);
nlohmann::json to_json(const Topology& topology);      // apiVersion, kind, metadata, spec, status
nlohmann::json to_json(const TopologyStatus& status);  // contents of "status"

}  // namespace gleaner::api
