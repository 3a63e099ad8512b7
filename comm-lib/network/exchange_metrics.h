// ExchangeMetrics are the metrics of a worker's exchanges. Each exchange has a class of its own, which follows the
// exchange's counters: PushMetrics those of the session, SliceMetrics those of the executor of schedules. They belong
// to the I/O thread.
#pragma once

#include "comm-lib/executor/counters.h"
#include "comm-lib/session/counters.h"
#include "common/metrics/following.h"

namespace gleaner::network {

class PushMetrics {
 public:
  PushMetrics(prometheus::Registry& registry, const prometheus::Labels& labels);
  void update(const session::Counters& session);

 private:
  metrics::FollowingCounter pushed_bytes_, repeated_pushes_, results_, deferred_, stalls_, moved_, handed_;
  prometheus::Gauge& retained_bytes_;
  prometheus::Gauge& outstanding_bytes_;
  prometheus::Gauge& window_bytes_;
};

class SliceMetrics {
 public:
  SliceMetrics(prometheus::Registry& registry, const prometheus::Labels& labels);
  void update(const executor::Counters& executor);

 private:
  metrics::FollowingCounter slices_, bytes_, repeated_, duplicates_, results_;
  prometheus::Gauge& unconfirmed_bytes_;
  prometheus::Gauge& window_bytes_;
};

struct ExchangeMetrics {
  ExchangeMetrics(prometheus::Registry& registry, const prometheus::Labels& labels)
      : pushes(registry, labels), slices(registry, labels) {}

  PushMetrics pushes;
  SliceMetrics slices;
};

}  // namespace gleaner::network
