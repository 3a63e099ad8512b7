#include "agent/publish/latency_metrics.h"

namespace gleaner::publish {

using metrics::add_gauge;

LatencyMetrics::LatencyMetrics(prometheus::Registry& registry, const std::string& node)
    : peers_(add_gauge(registry, {{"node", node}}, "gleaner_node_probe_peers",
                       "Other nodes whose latency this node's agent measures")),
      missing_(add_gauge(registry, {{"node", node}}, "gleaner_node_probe_missing_peers",
                         "Other nodes whose latency is to be measured and has not been yet")),
      oldest_seconds_(add_gauge(registry, {{"node", node}}, "gleaner_node_probe_oldest_seconds",
                                "Age of the oldest measurement of the others")),
      sent_(registry, {{"node", node}}, "gleaner_node_probe_sent_total", "Questions sent to other nodes' agents"),
      lost_(registry, {{"node", node}}, "gleaner_node_probe_lost_total", "Questions without an answer in time"),
      refused_(registry, {{"node", node}}, "gleaner_node_probe_refused_total",
               "Packets dropped: without a valid proof, of another version, or malformed") {}

void LatencyMetrics::show(const probe::LatencyReport& report) {
  peers_.Set(static_cast<double>(report.coverage.peers));
  missing_.Set(static_cast<double>(report.coverage.missing));
  oldest_seconds_.Set(absl::ToDoubleSeconds(report.coverage.oldest));
  sent_.follow(static_cast<double>(report.sent));
  lost_.follow(static_cast<double>(report.lost));
  refused_.follow(static_cast<double>(report.refused));
}

}  // namespace gleaner::publish
