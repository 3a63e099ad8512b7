// Rounds tell which other agent each agent measures at which time, so that no agent needs to be told (PLink, Luo's
// thesis §4.2.1): "At round r, node i sends probes to (i + r + 1) mod N and responds to probes from (i - r - 1 + N) mod
// N".
//
// All agents put their IP addresses in the same order, which gives each its place i, and take the round's number from
// the wall clock. So each agent asks one other agent in a round and answers one, and after N - 1 rounds, a *pass*, each
// pair is measured both ways. Agents whose clocks or lists of addresses differ measure out of turn, which costs some
// accuracy and nothing else. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace gleaner::probe {

inline constexpr absl::Duration kRoundTime = absl::Seconds(30);

// Returns the number of the round at `now`, and the time at which a round begins.
int64_t round_at(absl::Time now, absl::Duration round_time);
absl::Time start_of_round(int64_t round, absl::Duration round_time);

// The agents of a cluster in their common order.
struct AgentOrder {
  std::vector<std::string> hosts;  // IP addresses, ascending as texts
  size_t self = 0;                 // place of this agent
  bool operator==(const AgentOrder&) const = default;
};

// Returns the order of all agents, of which `own` is this one. `own` may be absent from `hosts`, as that of an agent
// that is not ready yet.
AgentOrder in_order(std::vector<std::string> hosts, const std::string& own);

// Returns the place of the agent that the agent at place `self` of `count` asks in the round. `count` is at least 2.
size_t peer_in_round(int64_t round, size_t self, size_t count);

}  // namespace gleaner::probe
