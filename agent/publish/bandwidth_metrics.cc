#include "agent/publish/bandwidth_metrics.h"

namespace gleaner::publish {
namespace {

metrics::FollowingCounter counter_of(prometheus::Registry& registry, const std::string& node, const char* result) {
  return {registry,
          {{"node", node}, {"result", result}},
          "gleaner_node_probe_bandwidth_measurements_total",
          "Measurements of bandwidths to other nodes that this node's agent began"};
}

}  // namespace

using metrics::add_gauge;

BandwidthMetrics::BandwidthMetrics(prometheus::Registry& registry, const std::string& node)
    : peers_(add_gauge(registry, {{"node", node}}, "gleaner_node_probe_bandwidth_peers",
                       "Other nodes to which this node's agent measures the bandwidth")),
      missing_(add_gauge(registry, {{"node", node}}, "gleaner_node_probe_bandwidth_missing_peers",
                         "Other nodes to which the bandwidth is to be measured and has not been yet")),
      oldest_seconds_(add_gauge(registry, {{"node", node}}, "gleaner_node_probe_bandwidth_oldest_seconds",
                                "Age of the oldest measurement of the others")),
      measured_(counter_of(registry, node, "ok")),
      declined_(counter_of(registry, node, "busy")),
      failed_(counter_of(registry, node, "error")) {}

void BandwidthMetrics::show(const probe::BandwidthReport& report) {
  peers_.Set(static_cast<double>(report.coverage.peers));
  missing_.Set(static_cast<double>(report.coverage.missing));
  oldest_seconds_.Set(absl::ToDoubleSeconds(report.coverage.oldest));
  measured_.follow(static_cast<double>(report.measured));
  declined_.follow(static_cast<double>(report.declined));
  failed_.follow(static_cast<double>(report.failed));
}

}  // namespace gleaner::publish
