// Metrics publishes a job's state as Prometheus metrics, gleaner_coordinator_*{job_name}. The caller owns the registry.
// The destructor removes the job's series.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/core/rounds.h"

namespace gleaner::coordinator {

class Metrics {
 public:
  Metrics(prometheus::Registry& registry, const std::string& job);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Sets the metrics to the core's state. Runs on the core's thread; scrapes may run at the same time. `refused`:
  // number of members that were refused before they reached the core. `past`: totals of an elastic job's ended rounds.
  void update(const Core& core, uint32_t refused = 0, const Past& past = {});

 private:
  struct MemberSeries {
    prometheus::Gauge* ranks_expected;
    prometheus::Gauge* ranks_joined;
    prometheus::Gauge* summers_expected;
    prometheus::Gauge* summers_joined;
    prometheus::Gauge* slow_summers;
    prometheus::Counter* rejected;
  };
  // The plan in force.
  struct PlanSeries {
    prometheus::Gauge* epoch;
    prometheus::Gauge* tensors;
    prometheus::Gauge* partitions;
    prometheus::Gauge* bound;
    prometheus::Gauge* bound_without_summers;
  };
  struct StepSeries {
    prometheus::Counter* count;
    prometheus::Gauge* bytes;
    prometheus::Gauge* dense_bytes;
    prometheus::Gauge* communication;
    prometheus::Gauge* goodput;
  };
  void show_efficiency(const Figures& figures);
  void show_strategies(const plan::Plan& plan);

  const prometheus::Labels labels_;
  MemberSeries members_;
  PlanSeries plan_;
  StepSeries steps_;
  prometheus::Family<prometheus::Gauge>& efficiency_;
  prometheus::Gauge* efficiency_known_ = nullptr;  // null, and without a series, while there is no efficiency
  prometheus::Family<prometheus::Gauge>& strategy_bytes_;
  std::map<std::string, prometheus::Gauge*> strategies_;  // by name, those of the plan in force
  prometheus::Counter* rounds_;
  prometheus::Counter* recovery_seconds_;
  std::vector<std::pair<prometheus::Counter*, uint32_t Changes::*>> changes_;
  std::vector<std::pair<prometheus::Family<prometheus::Gauge>*, prometheus::Gauge*>> gauges_;
  std::vector<std::pair<prometheus::Family<prometheus::Counter>*, prometheus::Counter*>> counters_;
};

}  // namespace gleaner::coordinator
