// FlowNetwork simulates messages on a topology at the level of flows. Pure.
//
// A connection leads from one host to another, and sends one message after the other, as TCP and RDMA do, over one
// shortest path that a hash of the seed and the two hosts chooses (ECMP, router.h). At each moment all connections that
// send have their max-min fair rates (fair_rates.h). Rates change only at *events*: connections begin or cease to send,
// or a link fails. Events at the same time count as one.
//
// Latency: a message uses all channels of its path from its start until its last byte leaves the sender; then the next
// message of the connection starts. It arrives the latency of its path later (the sum over the links). So a lone
// message of S bytes takes α + S·β.
//
// A link that fails takes both directions with it. Connections that use the link go on, with the bytes that they have
// left, over the shortest of the remaining paths. Connections that don't use it keep their paths.
//
// Memory: that of the connections used so far.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/netsim/fair_rates.h"
#include "common/netsim/router.h"
#include "common/topology/network.h"

namespace gleaner::netsim {

// A flow of other users of the network that never ends. It takes at most `bits_per_second`, and less where its fair
// share is less.
struct Background {
  uint32_t from = 0;  // a host
  uint32_t to = 0;    // another host
  double bits_per_second = 0;
};

struct Failure {
  uint32_t link = 0;   // index in Topology::links()
  double seconds = 0;  // since the start
};

// The events in the network beside the simulated messages: background flows and failures.
struct Conditions {
  uint64_t seed = 0;  // chooses among equally short paths; 0: the paths of the cost model (common/collective/cost.h)
  std::vector<Background> background;
  std::vector<Failure> failures;
};

class FlowNetwork {
 public:
  // InvalidArgument: a host, link, rate or time of the conditions is out of range. `network` must outlive the object.
  static absl::StatusOr<FlowNetwork> make(const topology::Network& network, const Conditions& conditions);

  // Opens a connection between two different hosts, and returns its index. Where it shares a link, its part is in
  // proportion to its weight, a whole number. Messages enter its *window* as long as those in the window, which have
  // not left, have at most `window_bytes` together; one may always be in it.
  uint32_t connect(uint32_t from, uint32_t to, double weight = 1, double window_bytes = 0);

  // Sends a message, now or after those that the connection has not sent yet; but before those whose `order` is
  // greater and that have not entered the window. advance() returns `id` when the message has arrived. Returns the
  // channels of the path, valid until the next call. Unavailable: failed links have left no path; the error names the
  // hosts.
  absl::StatusOr<std::span<const uint32_t>> send(uint64_t id, uint32_t connection, double bytes, uint64_t order = 0);

  // Goes on to the next event, or the next time at which messages arrive, and appends the ids of those messages in the
  // order of their arrival; or to `until_time`, if that comes first. Returns false if there is nothing to wait for,
  // and no `until_time`. Unavailable: as for send().
  absl::StatusOr<bool> advance(std::vector<uint64_t>& arrived, double until_time = kNever);

  static constexpr double kNever = std::numeric_limits<double>::infinity();

  double now() const { return now_; }  // seconds since the start
  uint64_t events() const { return events_; }
  const FairRates& rates() const { return rates_; }

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  struct Message {
    uint64_t id = 0;
    double bytes = 0;
    uint64_t order = 0;
  };
  struct Connection {
    uint32_t from = 0;
    uint32_t to = 0;
    double weight = 1;
    std::vector<uint32_t> channels;  // of the path; empty: not found yet, or lost
    double latency = 0;
    std::vector<Message> messages;  // messages[next_message] is being sent, or no message is left
    size_t next_message = 0;
    double window = 0;       // bytes
    size_t window_end = 0;   // messages before this one have entered the window
    double in_window = 0;    // bytes of those that have not left
    uint32_t flow = kNone;   // in rates_, while the connection sends
    uint32_t limit = kNone;  // of a background flow: the channel that limits its rate
    uint32_t version = 0;    // grows whenever an Ending becomes void
    double bytes = 0;        // of the message that is being sent, left at the time `since`
    double since = 0;
    double rate = 0;  // bytes per second, from `since` on

    bool has_message() const { return next_message < messages.size(); }
  };
  struct Ending {
    double seconds = 0;
    uint32_t connection = 0;
    uint32_t version = 0;
    bool operator>(const Ending& other) const {
      return seconds != other.seconds ? seconds > other.seconds : connection > other.connection;
    }
  };
  struct Arrival {
    double seconds = 0;
    uint64_t order = 0;  // of arrivals at the same time
    uint64_t id = 0;
    bool operator>(const Arrival& other) const {
      return seconds != other.seconds ? seconds > other.seconds : order > other.order;
    }
  };

  FlowNetwork(const topology::Network& network, const Conditions& conditions);
  absl::Status add_background(const Background& background);
  absl::Status find_path(uint32_t index);
  static void fill_window(Connection& connection);
  // Ends the message that has been sent, and takes it out of the window.
  void end_message(Connection& connection);
  // Starts the connection's next message with bytes, if there is one; otherwise the connection ceases to send.
  void start_next(uint32_t index);
  void enter(uint32_t index);
  void leave(Connection& connection);
  void arrive(uint64_t id, double seconds);
  void settle(Connection& connection) const;
  void expect_ending(uint32_t index);
  void update_rates();
  bool is_void(const Ending& ending) const { return connections_[ending.connection].version != ending.version; }
  void forget_void_endings();
  double next_time();
  void end_messages(double until);
  absl::Status fail_links(double until);
  absl::Status reroute();

  const topology::Topology& topology_;
  Router router_;
  FairRates rates_;
  uint64_t seed_;
  std::vector<Failure> failures_;  // the next one last
  std::vector<Connection> connections_;
  std::vector<uint32_t> connection_of_flow_;
  std::vector<Ending> endings_;    // a min-heap; may have void elements
  std::vector<Arrival> arrivals_;  // a min-heap
  uint64_t arrival_count_ = 0;
  uint64_t sending_ = 0;  // connections that send messages
  double now_ = 0;
  uint64_t events_ = 0;
  bool dirty_ = false;  // rates are not up to date
};

}  // namespace gleaner::netsim
