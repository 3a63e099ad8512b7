// TransportMetrics publishes the transports by which a member is connected as Prometheus metrics (gleaner_transport_*).
// The caller owns the registry.
#pragma once

#include <array>
#include <map>
#include <tuple>

#include "common/metrics/following.h"
#include "common/transport/any/transport.h"

namespace gleaner::service {

class TransportMetrics {
 public:
  // Registers every fallback metric that `preferences` make possible in the constructor, so that rates can be computed
  // from the start.
  TransportMetrics(prometheus::Registry& registry, prometheus::Labels labels,
                   const transport::Preferences& preferences);

  // Brings the metrics up to date with the counters. Called on the transport's thread; scrapes may run at the same
  // time.
  void update(const transport::any::Counters& counters);

 private:
  using Fallback = std::tuple<transport::Kind, transport::Kind, transport::any::Reason>;  // from, to, reason
  metrics::FollowingCounter& fallback(const Fallback& which);

  prometheus::Registry& registry_;
  const prometheus::Labels labels_;
  std::array<prometheus::Gauge*, transport::kKinds> connections_;
  std::map<Fallback, metrics::FollowingCounter> fallbacks_;
  metrics::FollowingCounter registrations_;
  metrics::FollowingCounter copies_;
  metrics::FollowingCounter lanes_;
};

}  // namespace gleaner::service
