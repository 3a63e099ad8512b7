// CallMetrics has the metrics of one kind of call of kube-scheduler (docs/metrics.md, gleaner_extender_*).
#pragma once

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstddef>
#include <string>

#include "absl/time/time.h"

namespace gleaner::extender {

class CallMetrics {
 public:
  CallMetrics(prometheus::Registry& registry, const std::string& call)
      : seconds_(&prometheus::BuildHistogram()
                      .Name("gleaner_extender_seconds")
                      .Help("Seconds that a call of the scheduler took")
                      .Register(registry)
                      .Add({{"call", call}}, prometheus::Histogram::BucketBoundaries{0.0005, 0.001, 0.002, 0.005, 0.01,
                                                                                     0.02, 0.05, 0.1, 0.2, 0.5, 1})),
        nodes_(&prometheus::BuildHistogram()
                    .Name("gleaner_extender_nodes")
                    .Help("Number of nodes in a call")
                    .Register(registry)
                    .Add({{"call", call}},
                         prometheus::Histogram::BucketBoundaries{1, 10, 30, 100, 300, 1000, 3000, 10000})),
        errors_(&prometheus::BuildCounter()
                     .Name("gleaner_extender_errors_total")
                     .Help("Calls whose body was not an ExtenderArgs object")
                     .Register(registry)
                     .Add({{"call", call}})) {}

  void record(absl::Duration took, size_t nodes) {
    seconds_->Observe(absl::ToDoubleSeconds(took));
    nodes_->Observe(static_cast<double>(nodes));
  }
  void record_error() { errors_->Increment(); }

 private:
  prometheus::Histogram* seconds_;
  prometheus::Histogram* nodes_;
  prometheus::Counter* errors_;
};

}  // namespace gleaner::extender
