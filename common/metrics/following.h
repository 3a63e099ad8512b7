// Prometheus metrics that follow counts in other objects. The thread that changes a count updates its metric; scrapes
// may run at the same time on other threads.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <string>

namespace gleaner::metrics {

// A Prometheus counter that follows a count which only grows.
class FollowingCounter {
 public:
  FollowingCounter(prometheus::Registry& registry, const prometheus::Labels& labels, const std::string& name,
                   const std::string& help)
      : counter_(&prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add(labels)) {}

  // Brings the counter up to `count`.
  void follow(double count) {
    counter_->Increment(count - last_);
    last_ = count;
  }

 private:
  prometheus::Counter* counter_;
  double last_ = 0;
};

inline prometheus::Gauge& add_gauge(prometheus::Registry& registry, const prometheus::Labels& labels,
                                    const std::string& name, const std::string& help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(labels);
}

}  // namespace gleaner::metrics
