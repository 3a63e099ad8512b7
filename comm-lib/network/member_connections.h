// MemberConnections holds the transports of a worker and the connections that the worker dials: one to the summer of
// each member of the plan in force, its own colocated summer included.
//
// The handler given to open() gets the callbacks of all connections. Those of a dialed connection it passes on to
// on_connected() and on_closed() here; member_of() says which member a frame is from. The handler handles accepted
// connections itself.
//
// Threads: as transport.h. Once warm, a frame costs no allocation, lock or needless system call.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "comm-lib/pipeline/stage.h"
#include "common/base/env.h"
#include "common/plan/plan.h"
#include "common/transport/factory/factory.h"
#include "common/transport/inproc/transport.h"

namespace gleaner::network {

class MemberConnections final : public pipeline::Waiter {
 public:
  struct Options {
    uint64_t job = 0;  // wire::job_number() of the job's name
    Address listen;
    std::string advertise;  // host that other members are told; empty: the one on which the worker listens
    transport::Settings transports;
  };
  struct Closed {
    uint32_t member = 0;
    bool was_up = false;
  };

  MemberConnections(const Env& env, Options options) : env_(env), options_(std::move(options)) {}

  // Makes the transports, and listens. `hub` is that of the colocated summer. All arguments must outlive this object.
  absl::Status open(transport::inproc::Hub* hub, transport::Handler* handler, const wire::JobSecrets* secrets);
  // Returns the address of the colocated summer, and its endpoints for each transport.
  const Address& address() const { return address_; }
  std::vector<std::string> endpoints() const;

  // Sets this worker's number, secret and deadline, with which connections are made.
  void set_welcome(const control::Welcome& welcome) { welcome_ = welcome; }
  // Brings a plan into force. The caller first drops connections to members that are no longer in their place.
  void follow(std::shared_ptr<const plan::Plan> plan);

  // Begins a connection to a member of the plan in force. An error means that no connection could be begun.
  absl::Status dial(uint32_t member);
  // Closes the connection to a member. No callback of it is passed on any more.
  void drop(uint32_t member);
  // Closes every connection; each is passed to on_closed().
  void close_all(const absl::Status& status);

  // Records that a dialed connection is up, or has ended. Nothing is returned, and nothing is recorded, if the
  // connection has been dropped.
  std::optional<uint32_t> on_connected(const transport::Connection& connection);
  std::optional<Closed> on_closed(const transport::Connection& connection);
  std::optional<uint32_t> member_of(const transport::Connection& connection) const;

  bool is_up(uint32_t member) const { return peers_[member].up; }
  // Returns whether the member is connected and has confirmed that all frames sent to it have arrived.
  bool all_arrived(uint32_t member) const { return is_up(member) && peers_[member].connection->all_arrived(); }
  // Sends a frame; drops it if the member is not connected.
  void send(uint32_t member, const wire::Header& header, Buffer payload);

  // Measures the round-trip time to the farthest connected member, and returns it.
  absl::Duration measure_round_trip();
  absl::Duration round_trip() const { return round_trip_; }
  // Measures the rate at which this worker sent to each connected member since the last measurement, while bytes
  // were under way: for 100 ms at least. The busy time of a connection (TCP_INFO) tells the rate also of a link that is
  // idle between steps.
  void measure_rates();
  // Returns the sum of the latest rates to members, in bits per second (BW(i) of Luo §4.2.3). Connections that send at
  // the same time share the link, so the sum is near its bandwidth; a slow peer lessens it. Zero: no rate is known.
  double link_bits_per_second() const;
  // Begins to measure overhead() with the members that are connected by a transport that knows their round trip (TCP):
  // with several until it is known, then with the next one. poll() goes on with the measurement. To be called while
  // nothing is in flight, since PINGs and PONGs wait behind other frames.
  void measure_overhead();
  // Returns how long this host's processor takes to send a message, and to receive one: the median over the members
  // measured so far that are connected. Zero: the first measurement has not ended.
  absl::Duration overhead() const { return has_measured_ ? overhead_ : absl::ZeroDuration(); }
  // Returns the transport by which each member is reached: "inproc: worker/0; shm: worker/1; tcp: summer/0".
  std::string describe_transports() const;
  transport::any::Counters counters() const;

  // Functions of the transport to other processes.
  void poll() {
    transport_->poll(absl::ZeroDuration());
    if (pinged_.has_value() && !is_being_pinged()) ping_next();
  }
  void flush() { transport_->flush(); }
  bool pending() const { return transport_->pending(); }
  int descriptor() const { return transport_->descriptor(); }
  // pipeline::Waiter.
  void wait(absl::Duration timeout) override { transport_->wait(timeout); }
  bool spin_before_wait(absl::Duration timeout) override { return transport_->spin_before_wait(timeout); }
  void wake() override { transport_->wake(); }
  // Functions of the transport to the own summer. Its frames are no reason to end a wait: own_pending() shows them.
  void poll_own() { to_own_->poll(absl::ZeroDuration()); }
  bool own_pending() const { return to_own_->pending(); }

 private:
  struct Peer {
    uint32_t member = 0;
    transport::Connection* connection = nullptr;  // set as soon as the connection is being made
    bool up = false;
    absl::Duration overhead;              // of a message to or from this member; zero: not measured
    std::optional<transport::Sent> sent;  // at the last measurement of rates
    double bits_per_second = 0;           // 0: not known under the plan in force
  };

  absl::StatusOr<transport::Connection*> connect(Peer& peer);
  static Peer* current(const transport::Connection& connection);
  // Returns whether the member is connected by a transport that knows the round trip.
  static bool is_measurable(const Peer& peer) {
    return peer.up && peer.connection->round_trip() > absl::ZeroDuration();
  }
  bool is_being_pinged() const { return peers_[*pinged_].up && peers_[*pinged_].connection->is_pinging(); }
  void ping_next();
  void note_overhead(Peer& peer);

  const Env env_;
  const Options options_;
  Address address_;
  control::Welcome welcome_;
  std::shared_ptr<const plan::Plan> plan_;
  std::deque<Peer> peers_;  // by member; Connection::context points into it
  absl::Duration round_trip_;
  absl::Duration overhead_;
  bool has_measured_ = false;
  std::optional<uint32_t> pinged_;  // the member that is measured now
  uint32_t last_pinged_ = 0;
  uint32_t left_to_ping_ = 0;  // number of members that are measured after that one
  // Declared last: their connections point into peers_.
  std::unique_ptr<transport::inproc::Transport> to_own_;  // to the colocated summer
  std::unique_ptr<transport::any::Transport> transport_;  // to other processes
};

}  // namespace gleaner::network
