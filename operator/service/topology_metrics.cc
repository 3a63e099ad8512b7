#include "operator/service/topology_metrics.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "common/fabric/fabric.h"

namespace gleaner::operation {
namespace {

prometheus::Family<prometheus::Gauge>& gauges(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

}  // namespace

TopologyMetrics::TopologyMetrics(prometheus::Registry& registry)
    : groups_(gauges(registry, "gleaner_operator_topology_groups", "Groups of near nodes, by what shows them")),
      nodes_(gauges(registry, "gleaner_operator_topology_nodes", "Nodes of the cluster")),
      nodes_without_group_(
          gauges(registry, "gleaner_operator_topology_nodes_without_group", "Nodes that are in no group")),
      uplinks_(gauges(registry, "gleaner_operator_topology_uplink_bits_per_second",
                      "Bandwidth of a group's uplink each way, where it is known")) {}

void TopologyMetrics::show(const api::TopologyStatus& topology) {
  double by_probes = 0, grouped = 0;
  for (const api::TopologyGroup& group : topology.groups) {
    by_probes += group.level == fabric::kProbedLevel ? 1 : 0;
    grouped += static_cast<double>(group.nodes.size());
  }
  groups_.Add({{"source", "labels"}}).Set(static_cast<double>(topology.groups.size()) - by_probes);
  groups_.Add({{"source", "probes"}}).Set(by_probes);
  nodes_.Add({}).Set(topology.node_count);
  nodes_without_group_.Add({}).Set(std::max(0.0, topology.node_count - grouped));
  std::vector<prometheus::Gauge*> uplinks;
  for (const api::TopologyGroup& group : topology.groups) {
    if (group.uplink_bits_per_second <= 0 || uplinks.size() == kMostUplinks) continue;
    const std::string source = absl::AsciiStrToLower(api::name_of(group.uplink_source));
    uplinks.push_back(&uplinks_.Add({{"group", group.name}, {"source", source}}));
    uplinks.back()->Set(group.uplink_bits_per_second);
  }
  for (prometheus::Gauge* gauge : shown_) {
    if (std::ranges::find(uplinks, gauge) == uplinks.end()) uplinks_.Remove(gauge);
  }
  shown_ = std::move(uplinks);
}

}  // namespace gleaner::operation
