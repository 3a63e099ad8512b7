// A coordinator's state as Prometheus metrics: gleaner_coordinator_*. The registry is the caller's.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <string>

#include "operator/coordinator/core.h"

namespace gleaner::coordinator {

class Metrics {
 public:
  Metrics(prometheus::Registry& registry, const std::string& job);

  // Brings the metrics up to the core's state. On the core's thread; scrapes may run at the same time.
  void update(const Core& core);

 private:
  prometheus::Gauge* ranks_expected_;
  prometheus::Gauge* ranks_joined_;
  prometheus::Gauge* summers_expected_;
  prometheus::Gauge* summers_joined_;
  prometheus::Gauge* epoch_;
  prometheus::Gauge* tensors_;
  prometheus::Gauge* partitions_;
  prometheus::Gauge* step_bytes_;
  prometheus::Gauge* communication_;
  prometheus::Gauge* bound_;
  prometheus::Gauge* bound_without_summers_;
  prometheus::Gauge* goodput_;
  prometheus::Counter* steps_;
  prometheus::Counter* rejected_;
};

}  // namespace gleaner::coordinator
