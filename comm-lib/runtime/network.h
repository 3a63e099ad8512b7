// Network is the network part of a worker, on local rank 0: the session's connections to every summer, and the
// colocated summer (colocated_summer.h), to which other workers connect.
//
// Belongs to the I/O thread. While that thread is in wait(), one other thread may call start(), advance() and
// has_work(), but no other function.
//
// comm-lib/supervision decides when to connect and when an owner is lost; Network carries the decisions out. It reports
// a lost CPU summer until a plan without that summer is in force. The loss of another worker's summer ends the session.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm-lib/runtime/colocated_summer.h"
#include "comm-lib/session/session.h"
#include "comm-lib/supervision/reports.h"
#include "comm-lib/supervision/supervisor.h"
#include "common/base/env.h"
#include "common/kernels/kernels.h"
#include "common/member/client.h"
#include "common/trace/recorder.h"
#include "common/transport/factory/factory.h"
#include "common/transport/inproc/transport.h"
#include "common/transport/transport.h"

namespace gleaner::runtime {

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

// The callbacks of Network.
class NetworkListener {
 public:
  virtual ~NetworkListener() = default;
  // A session::PieceRequest is done; OK: its output holds the result.
  virtual void on_summed(uint64_t id, const absl::Status& status) = 0;
  // A member's summer is lost. The listener reports this to the coordinator; Network repeats the call while the loss
  // lasts. `ends_job`: no other member can take over the summer's partitions, so the listener also calls
  // Network::fail().
  virtual void on_lost(uint32_t member, bool ends_job, const absl::Status& why) = 0;
  // An owner follows the plan of `epoch`, which is later than the plan in force here. `by_rank`: the owner is a
  // worker's colocated summer. Called at most once for each epoch and value of `by_rank`.
  virtual void on_owner_follows(uint32_t epoch, bool by_rank) = 0;
  // The session has failed; the listener calls Network::fail().
  virtual void on_failed(const absl::Status& why) = 0;
};

class Network : private transport::Handler, private wire::JobSecrets {
 public:
  // `kernels`, `recorder` and `listener` must outlive the Network.
  static absl::StatusOr<std::unique_ptr<Network>> create(const Env& env, const NetworkOptions& options,
                                                         const kernels::Kernels* kernels, trace::Recorder* recorder,
                                                         NetworkListener* listener);
  ~Network() override;

  // Return the address of the colocated summer, and its endpoints for each transport.
  const Address& address() const { return address_; }
  std::vector<std::string> endpoints() const { return to_texts(transport_->endpoints(options_.advertise)); }
  void wake() { transport_->wake(); }  // any thread
  bool spin_before_wait(absl::Duration timeout) { return transport_->spin_before_wait(timeout); }
  int descriptor() const { return transport_->descriptor(); }

  void on_welcome(const control::Welcome& welcome);
  absl::Status prepare(std::shared_ptr<const plan::Plan> plan);
  absl::Status commit(uint32_t epoch);

  void on_coordinator_lost();
  void on_coordinator_found();
  // The coordinator is lost, and no other will replace it.
  void on_coordinator_gone(const absl::Status& why);
  void set_ending();  // a worker has left the job cleanly
  void start(session::PieceRequest piece);
  void fail(const absl::Status& status);

  // Waits up to `timeout` until poll() has something to handle. poll() handles it and sends the frames that can be
  // sent.
  void wait(absl::Duration timeout);
  void poll();
  // Sends the frames of requests that start() has begun, as far as the network accepts them. Does not handle received
  // frames.
  void advance();

  bool has_work() const;   // poll() has work that needs no wait
  bool connected() const;  // this worker is connected to every summer of the plan in force
  bool idle() const;       // as a worker and as a summer, this worker has nothing that another member needs
  // Like idle(), for a worker that begins no further request: a sum that lacks its contribution can never be made.
  bool may_leave() const;
  // Returns a text for messages that names the summers that are not connected, or else those from which results are
  // due.
  std::string describe_waiting() const;
  // Returns the transport by which each summer is reached: "inproc: worker/0; shm: worker/1; tcp: summer/0".
  std::string describe_transports() const;

  // Returns the round-trip time to the farthest connected summer: the greatest Connection::round_trip().
  absl::Duration round_trip() const { return round_trip_; }
  // Returns the session's counters; none before the first commit.
  std::optional<session::Counters> session_counters() const {
    return session_ ? std::optional(session_->counters()) : std::nullopt;
  }
  // Adds the epoch of the plan in force, and how long each CPU summer has been late in it. Before the first commit it
  // adds nothing.
  void add_lateness(control::Report& report) const;
  const service::Summer* summer() const { return colocated_.summer(); }
  transport::any::Counters transport_counters() const;
  const transport::Preferences& transport_preferences() const { return transport_->preferences(); }

 private:
  // This worker's connection to one summer.
  struct Owner {
    uint32_t member = 0;
    transport::Connection* connection = nullptr;  // set as soon as the connection is being made
  };

  Network(const Env& env, const NetworkOptions& options, const kernels::Kernels* kernels, trace::Recorder* recorder,
          NetworkListener* listener);

  void on_connected(transport::Connection& connection) override;
  absl::StatusOr<Buffer> on_header(transport::Connection& connection, const wire::Header& header) override;
  void on_frame(transport::Connection& connection, const wire::Header& header, Buffer payload) override;
  void on_closed(transport::Connection& connection, const absl::Status& status) override;
  const wire::Secret* find(uint64_t job) const override;

  absl::Duration now() const { return env_.clock->since_start(); }
  void open_session();
  bool is_cpu_summer(const Owner& owner) const { return owner.member >= plan_->workers; }
  bool is_own(const Owner& owner) const { return owner.member == welcome_.member; }
  bool is_up(const Owner& owner) const { return supervisor_->is_up(owner.member); }
  void drop(const supervision::Drop& dropped);
  void connect(Owner& owner);
  absl::StatusOr<transport::Connection*> dial(Owner& owner);
  void log_transports();
  void note_arrivals();
  void supervise();
  void carry_out();
  void report_losses(const std::vector<uint32_t>& due);
  void measure_round_trip();
  void note_epoch(const Owner& owner, uint32_t epoch);
  bool has_local_work() const;  // work of the in-process transports and the session
  void flush();

  const Env env_;
  const NetworkOptions options_;
  const uint64_t job_;
  trace::Recorder* const recorder_;
  NetworkListener* const listener_;
  BufferPool pool_;
  control::Welcome welcome_;
  bool welcomed_ = false;
  ColocatedSummer colocated_;
  std::unique_ptr<session::Session> session_;
  std::deque<Owner> owners_;  // by member; Connection::context points into it
  // Set with the first commit.
  std::optional<supervision::Supervisor> supervisor_;
  std::optional<supervision::Reports> reports_;
  supervision::Actions supervised_;
  supervision::ReportActions report_actions_;
  session::Actions actions_;
  session::Actions flushing_;
  std::shared_ptr<const plan::Plan> prepared_;
  std::shared_ptr<const plan::Plan> plan_;
  // The highest epoch that any owner follows: among CPU summers, and among colocated summers.
  std::array<uint32_t, 2> noted_epochs_{};
  absl::Duration last_tick_;
  absl::Duration round_trip_;
  absl::Duration measure_at_;
  bool failed_ = false;
  Address address_;
  std::string logged_transports_;
  // Declared last: the transports hold connections of the members above, and buffers of pool_.
  std::unique_ptr<transport::inproc::Transport> to_summer_;  // to colocated_
  std::unique_ptr<transport::any::Transport> transport_;     // to other processes
};

}  // namespace gleaner::runtime
