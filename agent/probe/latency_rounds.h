// LatencyRounds decides which question an agent sends when, and turns answers into entries of its table. It is the
// protocol core of LatencyProbe. Pure; used by one thread.
//
// In each round (rounds.h) it measures the peer whose turn it is, if choose_peers() needs the peer's latency and the
// table's entry is missing or due for renewal. Questions begin a second after the round begins and end a second before
// it ends, so that clocks that differ by less do not make two agents ask one at a time. At most one question is in
// flight. A question without an answer after `timeout` is lost. The rest of a round is silent:
//
//   no answer to the first three questions      the peer is asked again in the next pass
//   the first answer names a node whose entry   the table knows this node from before, by another address or by
//   is not due, or this agent's own node        restore()
//   the clock shows another round               a jump of the clock; the measurement ends with the answers it has
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "agent/probe/choose_peers.h"
#include "agent/probe/coverage.h"
#include "agent/probe/latency_table.h"
#include "agent/probe/measurement.h"
#include "agent/probe/pace.h"
#include "agent/probe/rounds.h"

namespace gleaner::probe {

// The agents of the cluster, and what this one needs to know of each.
struct PeerList {
  AgentOrder agents;
  std::vector<Need> needs;
  bool operator==(const PeerList&) const = default;
};

struct LatencyTimes {
  absl::Duration round = kRoundTime;
  absl::Duration silence = absl::Seconds(1);  // at the begin and at the end of a round
  absl::Duration timeout = absl::Seconds(1);  // of a question
};

struct Question {
  std::string host;
  uint16_t sequence = 0;
  uint16_t round = 0;
};

class LatencyRounds {
 public:
  struct Now {
    absl::Time wall;           // tells the round
    absl::Duration monotonic;  // for pauses and timeouts
  };

  // `node` is the name of this agent's node.
  LatencyRounds(std::string node, LatencyTimes times) : node_(std::move(node)), times_(times) {}

  void set_peers(PeerList peers) { peers_ = std::move(peers); }
  void set_pace(Pace pace) { pace_ = pace; }
  // Stores entries that an earlier process of this agent has measured.
  void restore(const std::vector<api::PeerLatency>& entries);

  // Returns the question that is to be sent now, if there is one.
  std::optional<Question> next(Now now);
  // Returns how long there will be nothing to send, a second at most: a clock that jumps is noticed by then.
  absl::Duration idle(Now now) const;
  // Takes the answer to the question in flight.
  void answered(const std::string& node, absl::Duration round_trip, Now now);

  const LatencyTable& table() const { return table_; }
  Coverage coverage(absl::Time now) const;
  uint64_t sent() const { return sent_; }
  uint64_t lost() const { return lost_; }

 private:
  void begin(Now now);
  void finish(absl::Time now);
  bool may_ask(absl::Time now) const;
  absl::Duration renewal() const;
  size_t measured_peers() const;

  const std::string node_;
  const LatencyTimes times_;
  PeerList peers_;
  Pace pace_;
  LatencyTable table_;
  uint64_t sent_ = 0, lost_ = 0;

  // The present round.
  int64_t round_ = -1;
  std::string host_;  // of the peer that is measured; empty: none
  std::string peer_;  // its node, after the first answer
  Need need_ = Need::kNothing;
  uint32_t most_ = 0;  // number of questions
  Measurement measurement_;
  bool in_flight_ = false;
  absl::Duration asked_at_ = -absl::InfiniteDuration();  // monotonic time of the last question
};

}  // namespace gleaner::probe
