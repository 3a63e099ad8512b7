// Server is a CPU summer as a process. It joins a job, sums for it, and ends when the job ends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/base/env.h"
#include "common/base/mailbox.h"
#include "common/member/client.h"
#include "common/transport/factory/factory.h"
#include "summation-service/service/ending.h"
#include "summation-service/service/published_metrics.h"
#include "summation-service/service/summer.h"
#include "summation-service/service/watch.h"

namespace gleaner::service {

struct ServerOptions {
  Address coordinator;
  Address listen;
  std::string advertise;  // HOST to which workers connect; empty: the host of `listen`
  std::string token;
  std::string token_file;  // the file from which `token` was read
  std::string ca_file;     // CA of the coordinator's certificate; empty: no TLS
  std::string job = "default";
  std::optional<uint32_t> index;   // index of this summer in the job; none: the next free one
  double bits_per_second = 0;      // spare bandwidth each way; 0: the coordinator's setting applies
  uint64_t memory_cap_bytes = 0;   // 0: no cap
  std::string kernel;              // see Kernels::choose()
  std::optional<Address> metrics;  // address at which Prometheus metrics are served; none: not served
  absl::Duration join_timeout = absl::Seconds(60);
  transport::Settings transports;
  // Limit of the rate at which the summer sends over the network to all workers together; 0: no limit. With
  // `pace_by_plan` the limit is the summer's bandwidth in the plan in force, which follows the spare bandwidth of its
  // machine.
  double pace_bits_per_second = 0;
  bool pace_by_plan = false;
  // The watch of this machine; the server publishes its figures as metrics. Null: none. It must outlive the server.
  const Watch* watch = nullptr;
  // Called on run()'s thread when the summer has become a member of the job, and again after each return. Null: not.
  std::function<void()> on_joined;
};

// create() makes a server. run() runs on the caller's thread. Any thread may call stop().
class Server : private member::Listener, private wire::JobSecrets, private transport::Handler {
 public:
  static absl::StatusOr<std::unique_ptr<Server>> create(const Env& env, const ServerOptions& options);
  ~Server() override;

  // Serves until the job ends or goes on without this summer. Returns OK if the job finished or this summer left
  // cleanly, Aborted if the job counted this summer as lost, otherwise the reason for which the job failed.
  absl::Status run();

  // Leaves the job: run() returns when no member needs this summer, or after 1.8 s.
  void stop();
  // Ends run() with `why`, unless the summer has joined the job.
  void give_up_joining(const absl::Status& why);

 private:
  Server(const Env& env, const ServerOptions& options);

  // Called on the client's thread. Posts the event to run()'s thread, which calls handle().
  void on_event(const member::Event& event) override;
  void handle(const control::Welcome& welcome);
  void handle(const control::Prepare& prepare);
  void handle(const control::Commit& commit);
  void handle(const control::Failed& failed) { ending_.end(failed.status); }
  void handle(const control::Finished&) { ending_.end(absl::OkStatus()); }
  void handle(const member::CoordinatorLost& lost);
  void handle(const member::CoordinatorFound&) { ending_.set_coordinator_lost(false); }
  void handle(const control::Trace& trace);
  template <typename Other>
  void handle(const Other&) {}  // the other events do not concern a summer

  // Handshakes need the secret in the welcome, which also creates the summer. So no frame arrives before the summer
  // exists.
  const wire::Secret* find(uint64_t job) const override;
  void on_connected(transport::Connection& connection) override { summer_->on_connected(connection); }
  absl::StatusOr<Buffer> on_header(transport::Connection& connection, const wire::Header& header) override {
    return summer_->on_header(connection, header);
  }
  void on_frame(transport::Connection& connection, const wire::Header& header, Buffer payload) override {
    summer_->on_frame(connection, header, std::move(payload));
  }
  void on_closed(transport::Connection& connection, const absl::Status& status) override;

  // Returns the options with which this summer joins its job. Workers connect to `address`.
  member::JoinOptions join_options(const Address& address) const;

  const Env env_;
  const ServerOptions options_;
  const uint64_t job_;
  std::optional<kernels::Kernels> kernels_;
  BufferPool pool_;
  trace::Recorder recorder_;
  std::unique_ptr<PublishedMetrics> metrics_;  // null: not served
  std::optional<control::Welcome> welcome_;
  std::unique_ptr<Summer> summer_;
  std::unique_ptr<transport::any::Transport> transport_;
  std::shared_ptr<const plan::Plan> prepared_;
  Mailbox mailbox_;
  std::unique_ptr<member::Client> client_;
  Ending ending_;
};

}  // namespace gleaner::service
