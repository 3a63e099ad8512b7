// TopologyMetrics publishes gleaner_operator_topology_* (docs/metrics.md) of the status of the Topology. One thread
// sets them; scrapes may run at the same time.
#pragma once

#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstddef>
#include <vector>

#include "common/api/topology.h"

namespace gleaner::operation {

class TopologyMetrics {
 public:
  // Groups whose uplinks have a series: the first ones of the Topology with a known uplink.
  static constexpr size_t kMostUplinks = 100;

  explicit TopologyMetrics(prometheus::Registry& registry);
  void show(const api::TopologyStatus& topology);

 private:
  prometheus::Family<prometheus::Gauge>& groups_;
  prometheus::Family<prometheus::Gauge>& nodes_;
  prometheus::Family<prometheus::Gauge>& nodes_without_group_;
  prometheus::Family<prometheus::Gauge>& uplinks_;
  std::vector<prometheus::Gauge*> shown_;  // of uplinks_
};

}  // namespace gleaner::operation
