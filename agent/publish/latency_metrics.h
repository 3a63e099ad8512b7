// LatencyMetrics publishes metrics of the measurement of latencies. One thread sets them; scrapes may run at the same
// time.
#pragma once

#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <string>

#include "agent/probe/latency_probe.h"
#include "common/metrics/following.h"

namespace gleaner::publish {

class LatencyMetrics {
 public:
  // Every metric has the label `node`.
  LatencyMetrics(prometheus::Registry& registry, const std::string& node);

  void show(const probe::LatencyReport& report);

 private:
  prometheus::Gauge &peers_, &missing_, &oldest_seconds_;
  metrics::FollowingCounter sent_, lost_, refused_;
};

}  // namespace gleaner::publish
