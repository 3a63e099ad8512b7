// BandwidthMetrics publishes metrics of the measurement of bandwidths between nodes. One thread sets them; scrapes may
// run at the same time.
#pragma once

#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <string>

#include "agent/probe/bandwidth_probe.h"
#include "common/metrics/following.h"

namespace gleaner::publish {

class BandwidthMetrics {
 public:
  // Every metric has the label `node`.
  BandwidthMetrics(prometheus::Registry& registry, const std::string& node);

  void show(const probe::BandwidthReport& report);

 private:
  prometheus::Gauge &peers_, &missing_, &oldest_seconds_;
  metrics::FollowingCounter measured_, declined_, failed_;
};

}  // namespace gleaner::publish
