// RankMetrics serves a rank's counters as Prometheus metrics named gleaner_worker_*, at the address in GLEANER_METRICS.
// Belongs to the I/O thread.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "comm-lib/encoding/encoding_stage.h"
#include "comm-lib/network/exchange_metrics.h"
#include "comm-lib/network/network_stage.h"
#include "comm-lib/runtime/config.h"
#include "common/member/client.h"
#include "common/metrics/following.h"
#include "common/metrics/server.h"
#include "summation-service/service/metrics.h"
#include "summation-service/service/transport_metrics.h"

namespace gleaner::runtime {

class RankMetrics {
 public:
  // Starts to serve. Unavailable: the port is in use.
  static absl::StatusOr<std::unique_ptr<RankMetrics>> serve(const Address& address, const Config& config);

  // Sets the metrics. `waited`: time spent in gln_wait(). `network` is null on local ranks above 0.
  void update(const control::Report& report, const encoding::Counts& encoded, absl::Duration waited, uint32_t epoch,
              const network::NetworkStage* network);

 private:
  RankMetrics(const Config& config, const prometheus::Labels& labels);

  std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  metrics::FollowingCounter steps_, bytes_, communication_, waited_, compressed_, clipped_, flushed_;
  network::ExchangeMetrics exchanges_;
  prometheus::Gauge& round_trip_;
  prometheus::Gauge& overhead_;
  prometheus::Gauge& epoch_;
  service::SummerMetrics summer_;  // of the colocated summer
  service::TransportMetrics transports_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace gleaner::runtime
