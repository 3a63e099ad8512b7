// NetworkStage is the last stage of local rank 0: it sums pieces over the workers of the job. It passes each piece to
// the exchange that sums it (exchanges.h), and carries frames between the exchanges, the colocated summer
// (colocated_summer.h), and other members:
//
//   start() ──▶ Exchanges ──── frames ────▶ MemberConnections ──▶ owners' summers
//                   ▲ ▲                           │ dialed
//                   │ └────────── answers ────────┘
//                   │ slices
//               accepted connections of other workers ──▶ ColocatedSummer
//
// OwnerSupervision decides when to connect to a member and when a member is lost. The loss of another worker, and an
// exchange that fails, end the session.
//
// Threads: as Stage. Other threads may start pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm-lib/exchange/exchanges.h"
#include "comm-lib/network/colocated_summer.h"
#include "comm-lib/network/member_connections.h"
#include "comm-lib/network/owner_epochs.h"
#include "comm-lib/network/owner_supervision.h"
#include "comm-lib/pipeline/stage.h"
#include "comm-lib/session/session.h"
#include "common/base/env.h"
#include "common/control/report.h"
#include "common/kernels/kernels.h"
#include "common/trace/recorder.h"
#include "common/transport/transport.h"

namespace gleaner::executor {
class Executor;
struct Call;
}  // namespace gleaner::executor

namespace gleaner::network {

struct ExchangeMetrics;

struct NetworkOptions {
  std::string job;
  Address listen;
  std::string advertise;      // host that other members are told; empty: the one on which the summer listens
  uint64_t window_bytes = 0;  // 0: plan::window_bytes() decides
  uint64_t summer_memory_bytes = 0;
  transport::Settings transports;
  // The time to wait for a lost coordinator that may return.
  absl::Duration plan_timeout = absl::Minutes(10);
};

class NetworkStage : public pipeline::Stage, private transport::Handler, private wire::JobSecrets {
 public:
  // `kernels`, `recorder` and `listener` must outlive the stage.
  static absl::StatusOr<std::unique_ptr<NetworkStage>> create(const Env& env, const NetworkOptions& options,
                                                              const kernels::Kernels* kernels,
                                                              trace::Recorder* recorder, NetworkListener* listener);
  ~NetworkStage() override;

  // Return the address of the colocated summer, and its endpoints for each transport.
  const Address& address() const { return connections_.address(); }
  std::vector<std::string> endpoints() const { return connections_.endpoints(); }
  std::string describe_transports() const { return connections_.describe_transports(); }

  // pipeline::Stage. connected(): to every summer of the plan in force. idle(): as a worker and as a summer, this
  // worker has nothing that another member needs. may_leave(): like idle(), but a sum that lacks this worker's
  // contribution does not count, since it can never be made.
  void start(pipeline::PieceRequest piece) override;
  absl::Status on_event(const pipeline::Event& event) override;
  void poll() override;
  void advance() override;
  void fail(const absl::Status& status) override;
  bool has_work() const override { return connections_.pending() || has_local_work(); }
  bool connected() const override { return supervision_.has_value() && supervision_->all_up(); }
  bool idle() const override { return exchanges_.idle() && colocated_.idle(); }
  bool may_leave() const override;
  // Make a group of workers, remove it, and start a call of it (comm-lib/executor/calls.h). The listener learns the
  // outcome of a call, also of one that can't start. FailedPrecondition: there is no plan yet.
  absl::Status add_group(uint32_t group, std::vector<uint32_t> members);
  absl::Status remove_group(uint32_t group);
  void start_call(const executor::Call& call);
  // Returns the text of executor::Calls::describe().
  std::string describe_call(uint64_t id) const;
  bool has_arrived(uint32_t group) const;
  // Names the summers that are not connected, or else those from which results are due.
  std::string describe_waiting() const override;
  // Returns the members from which frames are due; the one that has been silent for longest comes first.
  std::vector<uint32_t> waiting_for() const;
  int descriptor() const override { return connections_.descriptor(); }
  pipeline::Waiter* waiter() override { return &connections_; }
  bool starts_on_any_thread() const override { return true; }

  // Figures. Before the first commit update() has no effect, and add_figures() adds only the times of messages.
  absl::Duration round_trip() const { return connections_.round_trip(); }
  absl::Duration overhead() const { return connections_.overhead(); }  // see MemberConnections
  // Brings the metrics up to date with the counters of the exchanges.
  void update(ExchangeMetrics& metrics) const;
  // Adds the round-trip time, the overhead of a message, the rate of the link, the epoch of the plan in force, and how
  // long each CPU summer has been late in it.
  void add_figures(control::Report& report) const;
  const service::Summer* summer() const { return colocated_.summer(); }  // null: not open
  transport::any::Counters transport_counters() const { return connections_.counters(); }

 private:
  NetworkStage(const Env& env, const NetworkOptions& options, const kernels::Kernels* kernels,
               trace::Recorder* recorder, NetworkListener* listener);

  // transport::Handler, for dialed and accepted connections.
  void on_connected(transport::Connection& connection) override;
  absl::StatusOr<Buffer> on_header(transport::Connection& connection, const wire::Header& header) override;
  void on_frame(transport::Connection& connection, const wire::Header& header, Buffer payload) override;
  void on_closed(transport::Connection& connection, const absl::Status& status) override;
  void on_accepted_frame(transport::Connection& connection, const wire::Header& header, Buffer payload);
  void report_refusal();
  absl::Status take_answer(uint32_t member, const wire::Header& header, Buffer payload);
  const wire::Secret* find(uint64_t job) const override;

  absl::Duration now() const { return env_.clock->since_start(); }
  bool is_following() const { return supervision_.has_value(); }  // a plan
  void join(const pipeline::Welcome& welcome);
  absl::Status prepare(const std::shared_ptr<const plan::Plan>& plan);
  absl::Status commit(uint32_t epoch);
  void open_exchanges();
  void tick();
  void measure();  // the round trip and the rates; measure_overhead_if_idle() then measures the overhead
  void measure_overhead_if_idle();
  void log_transports();
  bool has_local_work() const;  // work of the in-process transports and the exchanges
  void flush();

  const Env env_;
  const NetworkOptions options_;
  const uint64_t job_;
  const kernels::Kernels* const kernels_;
  trace::Recorder* const recorder_;
  NetworkListener* const listener_;
  BufferPool pool_;
  std::optional<pipeline::Welcome> welcome_;
  ColocatedSummer colocated_;
  exchange::Exchanges exchanges_;
  session::Session* session_ = nullptr;     // one of exchanges_
  executor::Executor* executor_ = nullptr;  // one of exchanges_
  exchange::Actions flushing_;
  std::optional<OwnerSupervision> supervision_;  // from the first commit on
  OwnerEpochs owner_epochs_;
  absl::Duration last_tick_;
  absl::Duration measure_at_;
  bool is_overhead_due_ = false;
  std::string logged_transports_;
  MemberConnections connections_;  // declared last: it holds connections of the members above, and buffers of pool_
};

}  // namespace gleaner::network
