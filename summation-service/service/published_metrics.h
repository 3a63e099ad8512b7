// PublishedMetrics serves the metrics of a CPU summer over HTTP for Prometheus: those of the summer, of its transports,
// and of the watch of its machine.
//
// Threads: update() runs on the summer's thread; scrapes may run at the same time.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/address.h"
#include "common/metrics/server.h"
#include "common/transport/any/transport.h"
#include "summation-service/service/metrics.h"
#include "summation-service/service/transport_metrics.h"
#include "summation-service/service/watch.h"

namespace gleaner::service {

class PublishedMetrics {
 public:
  // Serves the metrics of a summer of `job` at `address`. `watch` must outlive this object; null: none.
  static absl::StatusOr<std::unique_ptr<PublishedMetrics>> serve(const Address& address, const std::string& job,
                                                                 const transport::Preferences& preferences,
                                                                 const Watch* watch);

  // Brings the metrics up to date, if the last update is kUpdateEvery ago.
  void update(const Summer& summer, const transport::any::Transport& transport, absl::Duration now);

  static constexpr absl::Duration kUpdateEvery = absl::Milliseconds(250);

 private:
  PublishedMetrics(const std::string& job, const transport::Preferences& preferences, const Watch* watch);

  std::shared_ptr<prometheus::Registry> registry_;
  std::unique_ptr<http::Server> server_;
  SummerMetrics summer_;
  TransportMetrics transport_;
  const Watch* const watch_;
  // Share of processor time that other processes used, as measured by the watch; null: no watch.
  prometheus::Gauge* others_gauge_ = nullptr;
  absl::Duration updated_;  // time of the last update
};

}  // namespace gleaner::service
