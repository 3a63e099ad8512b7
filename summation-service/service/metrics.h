// SummerMetrics publishes a summer's counters as Prometheus metrics (gleaner_summer_*). The caller owns the registry.
#pragma once

#include <string>
#include <vector>

#include "common/metrics/following.h"
#include "summation-service/service/summer.h"

namespace gleaner::service {

class SummerMetrics {
 public:
  SummerMetrics(prometheus::Registry& registry, const std::string& job);

  // Brings the metrics up to date with the summer's counters. Called on the summer's thread; scrapes may run at the
  // same time.
  void update(const Summer& summer);

 private:
  struct Total {
    metrics::FollowingCounter counter;
    uint64_t engine::Counters::*count;
  };
  std::vector<Total> totals_;
  prometheus::Gauge* memory_;
  prometheus::Gauge* epoch_;
  prometheus::Gauge* workers_;
};

}  // namespace gleaner::service
