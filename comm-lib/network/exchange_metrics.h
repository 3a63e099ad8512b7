// PushMetrics and SliceMetrics are the metrics of a worker's exchanges: of partitions that owners sum, and of those
// that workers sum by schedules. They belong to the I/O thread.
#pragma once

#include <memory>

#include "comm-lib/exchange/exchange.h"
#include "common/metrics/following.h"

namespace gleaner::network {

class PushMetrics {
 public:
  PushMetrics(prometheus::Registry& registry, const prometheus::Labels& labels);
  void update(const exchange::Counters& session);

 private:
  metrics::FollowingCounter pushed_bytes_, repeated_pushes_, results_, deferred_, stalls_, moved_, handed_;
  prometheus::Gauge& retained_bytes_;
  prometheus::Gauge& outstanding_bytes_;
  prometheus::Gauge& window_bytes_;
};

class SliceMetrics {
 public:
  SliceMetrics(prometheus::Registry& registry, const prometheus::Labels& labels);
  void update(const exchange::Counters& executor);

 private:
  metrics::FollowingCounter slices_, bytes_, repeated_, duplicates_, results_;
  prometheus::Gauge& unconfirmed_bytes_;
  prometheus::Gauge& window_bytes_;
};

}  // namespace gleaner::network
