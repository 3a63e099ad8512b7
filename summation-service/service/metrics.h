// A summer's counters as Prometheus metrics: gleaner_summer_*. The registry is the caller's.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <string>
#include <vector>

#include "summation-service/engine/engine.h"

namespace gleaner::service {

class SummerMetrics {
 public:
  SummerMetrics(prometheus::Registry& registry, const std::string& job);

  // Brings the metrics up to these counts. On the summer's thread; scrapes may run at the same time.
  void update(const engine::Counters& counters, uint32_t epoch, uint32_t connected_workers);

 private:
  struct Total {
    prometheus::Counter* metric;
    uint64_t engine::Counters::*count;
    uint64_t last = 0;
  };
  std::vector<Total> totals_;
  prometheus::Gauge* memory_;
  prometheus::Gauge* epoch_;
  prometheus::Gauge* workers_;
};

}  // namespace gleaner::service
