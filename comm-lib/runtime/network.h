// What local rank 0 of a worker does on the network: its session's connections to every summer, and the colocated
// summer that other workers connect to. The I/O thread owns it all, but for start() and advance(): while the I/O thread
// is in wait(), another may call these, if it keeps out of the rest.
//
// When connections are made, and when an owner counts as lost, is decided by comm-lib/supervision; this class carries
// it out. A lost CPU summer is reported until a plan without it is in force; the loss of another worker's ends the
// session.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm-lib/session/session.h"
#include "comm-lib/supervision/reports.h"
#include "comm-lib/supervision/supervisor.h"
#include "common/base/env.h"
#include "common/kernels/kernels.h"
#include "common/member/client.h"
#include "common/trace/recorder.h"
#include "common/transport/inproc/transport.h"
#include "common/transport/transport.h"
#include "common/transports/settings.h"
#include "summation-service/service/summer.h"

namespace gleaner::runtime {

struct NetworkOptions {
  std::string job;
  Address listen;
  uint64_t window_bytes = 0;  // 0: plan::window_bytes()'s choice
  uint64_t summer_memory_bytes = 0;
  transport::Settings transports;
  absl::Duration plan_timeout = absl::Minutes(10);  // that a lost coordinator which may come back is waited for
};

class Network : private transport::Handler, private wire::JobSecrets {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual void on_summed(uint64_t request, const absl::Status& status) = 0;
    // To be reported to the coordinator; again and again while it lasts. `ends_job`: nobody can take over what it sums,
    // and the caller calls fail().
    virtual void on_lost(uint32_t member, bool ends_job, const absl::Status& why) = 0;
    // An owner follows the plan of `epoch`, which may not be in force here yet; `by_rank`: another rank's own summer,
    // or this one's. Once for each epoch and kind.
    virtual void on_owner_follows(uint32_t epoch, bool by_rank) = 0;
    // The session can't go on; the caller calls fail().
    virtual void on_failed(const absl::Status& why) = 0;
  };

  // `kernels`, `recorder` and `events` outlive it.
  static absl::StatusOr<std::unique_ptr<Network>> create(const Env& env, const NetworkOptions& options,
                                                         const kernels::Kernels* kernels, trace::Recorder* recorder,
                                                         Events* events);
  ~Network() override;

  const Address& address() const { return address_; }                                       // where it listens
  std::vector<std::string> endpoints() const { return to_texts(transport_->endpoints()); }  // and by what
  void wake() { transport_->wake(); }                                                       // any thread
  bool linger(absl::Duration timeout) { return transport_->linger(timeout); }
  int descriptor() const { return transport_->descriptor(); }

  void on_welcome(const member::Welcome& welcome);
  absl::Status prepare(std::shared_ptr<const plan::Plan> plan);
  absl::Status commit(uint32_t epoch);

  void on_coordinator_lost();
  void on_coordinator_found();
  void on_coordinator_gone(const absl::Status& why);  // and none will take its place
  void set_ending();                                  // a worker has left well
  void start(session::Request request);
  void fail(const absl::Status& status);

  // Waits until something comes, up to `timeout`; then poll() moves what can be moved.
  void wait(absl::Duration timeout);
  void poll();
  // What was started leaves, as far as the network takes it; nothing that has come is looked at.
  void advance();

  bool has_work() const;   // for poll(), without a wait
  bool connected() const;  // to every summer of the plan in force
  bool idle() const;       // as a worker and as a summer: others need nothing more of us
  bool may_leave() const;  // the same, once we begin nothing more: what lacks our contribution can never be summed
  // Names of summers that it has no connection to, or waits for results from: for messages.
  std::string describe_waiting() const;
  // By what it reaches each summer: "inproc: worker/0; shm: worker/1; tcp: summer/0".
  std::string describe_transports() const;

  absl::Duration round_trip() const { return round_trip_; }  // to the farthest summer, at best; measured
  const session::Counters* session_counters() const { return session_ ? &session_->counters() : nullptr; }
  const service::Summer* summer() const { return summer_.get(); }
  transport::any::Counters transport_counters() const;
  const transport::Preferences& transport_preferences() const { return transport_->preferences(); }

 private:
  // This worker's connection to one summer.
  struct Owner {
    uint32_t member = 0;
    transport::Connection* connection = nullptr;  // also while it is being made
  };

  Network(const Env& env, const NetworkOptions& options, const kernels::Kernels* kernels, trace::Recorder* recorder,
          Events* events);

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
  void part(const supervision::Drop& drop);
  void connect(Owner& owner);
  absl::StatusOr<transport::Connection*> dial(Owner& owner);
  void note_transports();
  void note_arrivals();
  void supervise();
  void carry_out();
  void tell_losses(const std::vector<uint32_t>& due);
  void measure_round_trip();
  void note_epoch(const Owner& owner, uint32_t epoch);
  bool has_local_work() const;  // in this process
  void flush();

  const Env env_;
  const NetworkOptions options_;
  const uint64_t job_;
  const kernels::Kernels* const kernels_;
  trace::Recorder* const recorder_;
  Events* const events_;
  BufferPool pool_;
  member::Welcome welcome_;
  bool welcomed_ = false;
  std::unique_ptr<service::Summer> summer_;
  std::unique_ptr<session::Session> session_;
  std::deque<Owner> owners_;  // by member; connections point into it
  // Both from the first commit on.
  std::optional<supervision::Supervisor> supervisor_;
  std::optional<supervision::Reports> reports_;
  supervision::Actions supervised_;
  supervision::Told told_;
  session::Actions actions_;
  session::Actions flushing_;
  std::shared_ptr<const plan::Plan> prepared_;
  std::shared_ptr<const plan::Plan> plan_;
  std::array<uint32_t, 2> noted_epochs_{};  // of CPU summers, of ranks' own: the highest that any follows
  absl::Duration last_tick_;
  absl::Duration round_trip_;
  absl::Duration measure_at_;
  bool failed_ = false;
  Address address_;
  std::unique_ptr<transport::inproc::Hub> hub_;
  std::unique_ptr<transport::inproc::Transport> to_summer_;     // in process: the session's side
  std::unique_ptr<transport::inproc::Transport> from_session_;  // in process: the summer's side
  std::unique_ptr<transport::any::Transport> transport_;        // to other processes
  std::string noted_transports_;
};

}  // namespace gleaner::runtime
