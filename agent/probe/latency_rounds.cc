#include "agent/probe/latency_rounds.h"

#include <algorithm>
#include <utility>

namespace gleaner::probe {
namespace {

constexpr uint32_t kPatience = 3;                        // questions that a silent peer gets in a round
constexpr absl::Duration kLongestAge = absl::Hours(48);  // of an entry, more than twice the longest renewal period

}  // namespace

size_t LatencyRounds::measured_peers() const {
  return static_cast<size_t>(std::ranges::count(peers_.needs, Need::kLatency));
}

absl::Duration LatencyRounds::renewal() const { return renewal_period(measured_peers()); }

void LatencyRounds::restore(const std::vector<api::PeerLatency>& entries) {
  for (const api::PeerLatency& entry : entries) table_.put(entry);
}

// Chooses the peer of the round that begins now.
void LatencyRounds::begin(Now now) {
  round_ = round_at(now.wall, times_.round);
  table_.forget(peers_.agents, now.wall - kLongestAge);
  if (peers_.agents.hosts.size() < 2) return;
  const size_t place = peer_in_round(round_, peers_.agents.self, peers_.agents.hosts.size());
  const std::string& host = peers_.agents.hosts[place];
  need_ = peers_.needs[place];
  if (need_ == Need::kNothing || (need_ == Need::kName && table_.node_of().contains(host)) ||
      (need_ == Need::kLatency && !table_.is_due(host, now.wall, renewal()))) {
    return;
  }
  host_ = host;
  peer_.clear();
  most_ = need_ == Need::kLatency ? pace_.questions : 1;
}

// Ends the measurement of this round, and stores the latency if it was needed.
void LatencyRounds::finish(absl::Time now) {
  if (in_flight_) ++lost_;
  if (need_ == Need::kLatency && !measurement_.round_trips.empty()) {
    table_.put({.node = peer_,
                .round_trip = measurement_.round_trip(),
                .lost_percent = measurement_.lost_percent(),
                .observed_time = now});
  }
  host_.clear();
  measurement_ = {};
  in_flight_ = false;
}

bool LatencyRounds::may_ask(absl::Time now) const {
  const absl::Duration offset = now - start_of_round(round_, times_.round);
  return offset >= times_.silence && offset <= times_.round - times_.silence;
}

std::optional<Question> LatencyRounds::next(Now now) {
  if (in_flight_ && now.monotonic - asked_at_ >= times_.timeout) {
    in_flight_ = false;
    ++lost_;
  }
  if (round_at(now.wall, times_.round) != round_) {
    if (!host_.empty()) finish(now.wall);
    begin(now);
  }
  if (host_.empty() || in_flight_) return std::nullopt;
  const bool is_silent = measurement_.asked >= kPatience && measurement_.round_trips.empty();
  if (measurement_.asked >= most_ || is_silent) {
    finish(now.wall);
    return std::nullopt;
  }
  if (!may_ask(now.wall) || now.monotonic - asked_at_ < pace_.pause) return std::nullopt;
  in_flight_ = true;
  asked_at_ = now.monotonic;
  ++sent_;
  return Question{host_, static_cast<uint16_t>(measurement_.asked++), static_cast<uint16_t>(round_)};
}

absl::Duration LatencyRounds::idle(Now now) const {
  absl::Duration idle = absl::Seconds(1);
  if (!host_.empty()) {
    const absl::Duration offset = now.wall - start_of_round(round_, times_.round);
    if (in_flight_ || may_ask(now.wall)) {
      idle = std::min(idle, asked_at_ + (in_flight_ ? times_.timeout : pace_.pause) - now.monotonic);
    } else if (offset < times_.silence) {
      idle = std::min(idle, times_.silence - offset);
    }
  }
  const absl::Time end = start_of_round(round_at(now.wall, times_.round) + 1, times_.round);
  return std::clamp(std::min(idle, end - now.wall), absl::ZeroDuration(), absl::Seconds(1));
}

void LatencyRounds::answered(const std::string& node, absl::Duration round_trip, Now now) {
  if (!in_flight_) return;
  in_flight_ = false;
  if (round_trip <= absl::ZeroDuration() || round_trip > times_.timeout) {  // the wall clock was set meanwhile
    ++lost_;
    return;
  }
  const bool is_first = peer_.empty();
  peer_ = node;
  table_.set_node(host_, node);
  const bool is_useless = node == node_ || (is_first && !table_.is_due(host_, now.wall, renewal()));
  if (is_useless) {
    measurement_ = {};
  } else {
    measurement_.round_trips.push_back(round_trip);
  }
  if (is_useless || measurement_.asked >= most_) finish(now.wall);
}

Coverage LatencyRounds::coverage(absl::Time now) const {
  Coverage coverage;
  for (size_t i = 0; i < peers_.needs.size(); ++i) {
    if (peers_.needs[i] != Need::kLatency) continue;
    ++coverage.peers;
    const api::PeerLatency* entry = table_.find(peers_.agents.hosts[i]);
    if (entry == nullptr) {
      ++coverage.missing;
    } else {
      coverage.oldest = std::max(coverage.oldest, now - entry->observed_time);
    }
  }
  return coverage;
}

}  // namespace gleaner::probe
