// A CPU summer as a process: joins a job, sums for it, leaves with it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/base/env.h"
#include "common/base/mailbox.h"
#include "common/member/client.h"
#include "common/metrics/server.h"
#include "common/transports/settings.h"
#include "summation-service/service/metrics.h"
#include "summation-service/service/summer.h"
#include "summation-service/service/transport_metrics.h"
#include "summation-service/service/watch.h"

namespace gleaner::service {

struct ServerOptions {
  Address coordinator;
  Address listen;
  std::string advertise;  // HOST that workers shall connect to; empty: the one of `listen`
  std::string token;
  std::string token_file;  // of which `token` is the contents
  std::string ca_file;     // whom the coordinator's certificate must come from; empty: no TLS
  std::string job = "default";
  std::optional<uint32_t> index;   // none: the next free one
  double bits_per_second = 0;      // 0: the coordinator's word counts
  uint64_t memory_cap_bytes = 0;   // 0: none
  std::string kernel;              // empty: the best here
  std::optional<Address> metrics;  // serve Prometheus text there
  absl::Duration join_timeout = absl::Seconds(60);
  transport::Settings transports;
  // Most that it sends by the network, to all workers together; 0: as much as it can. `pace_by_plan`: what the plan in
  // force reckons with, which follows what its machine has to spare.
  double pace_bits_per_second = 0;
  bool pace_by_plan = false;
  const Watch* watch = nullptr;  // over this machine, whose figures are served; null: none. Outlives the server
};

// Threads: run() on the caller's, stop() from any.
class Server : private member::Listener, private wire::JobSecrets, private transport::Handler {
 public:
  static absl::StatusOr<std::unique_ptr<Server>> create(const Env& env, const ServerOptions& options);
  ~Server() override;

  // Serves until the job ends, or goes on without this summer: OK when it finished or this summer left well, Aborted
  // when the job took it for lost, otherwise why it failed.
  absl::Status run();

  // Leaves the job: run() returns when nobody needs this summer any more, or after 1.8 s.
  void stop();

 private:
  Server(const Env& env, const ServerOptions& options);

  // The coordinator's thread: each posts to run()'s.
  void on_welcome(const member::Welcome& welcome) override;
  void on_prepare(std::shared_ptr<const plan::Plan> plan) override;
  void on_commit(uint32_t epoch) override;
  void on_failed(const absl::Status& status) override;
  void on_finished() override;
  void on_coordinator_lost() override;
  void on_coordinator_found() override;
  void on_trace(member::TraceOrder order, uint64_t recording) override;

  // Handshakes need the secret that comes with the welcome, which also makes the summer: no frame comes before it.
  const wire::Secret* find(uint64_t job) const override;
  void on_connected(transport::Connection& connection) override { summer_->on_connected(connection); }
  absl::StatusOr<Buffer> on_header(transport::Connection& connection, const wire::Header& header) override {
    return summer_->on_header(connection, header);
  }
  void on_frame(transport::Connection& connection, const wire::Header& header, Buffer payload) override {
    summer_->on_frame(connection, header, std::move(payload));
  }
  void on_closed(transport::Connection& connection, const absl::Status& status) override;

  void end(const absl::Status& status);
  void end_if_abandoned();

  const Env env_;
  const ServerOptions options_;
  const uint64_t job_;
  std::optional<kernels::Kernels> kernels_;
  BufferPool pool_;
  trace::Recorder recorder_;
  std::shared_ptr<prometheus::Registry> registry_;
  std::unique_ptr<metrics::MetricsServer> metrics_server_;
  std::optional<SummerMetrics> metrics_;
  std::optional<TransportMetrics> transport_metrics_;
  std::optional<member::Welcome> welcome_;
  std::unique_ptr<Summer> summer_;
  std::unique_ptr<transport::any::Transport> transport_;
  std::shared_ptr<const plan::Plan> prepared_;
  Mailbox mailbox_;
  std::unique_ptr<member::Client> client_;
  std::optional<absl::Status> ended_;
  std::optional<absl::Duration> leave_by_;  // once it wants to go
  prometheus::Gauge* others_ = nullptr;     // what is seen by the watch; null: there is none, or nobody asks
  bool coordinator_lost_ = false;           // the job goes on; its end shows when the workers have gone
  absl::Duration last_company_;             // when there was a worker, or a coordinator
};

}  // namespace gleaner::service
