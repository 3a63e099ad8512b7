#include "agent/probe/rounds.h"

#include <algorithm>

namespace gleaner::probe {

int64_t round_at(absl::Time now, absl::Duration round_time) {
  return absl::ToInt64Nanoseconds(absl::Floor(now - absl::UnixEpoch(), round_time)) /
         absl::ToInt64Nanoseconds(round_time);
}

absl::Time start_of_round(int64_t round, absl::Duration round_time) { return absl::UnixEpoch() + round * round_time; }

AgentOrder in_order(std::vector<std::string> hosts, const std::string& own) {
  hosts.push_back(own);
  std::ranges::sort(hosts);
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  const auto found = std::ranges::lower_bound(hosts, own);
  const auto self = static_cast<size_t>(found - hosts.begin());
  return {std::move(hosts), self};
}

size_t peer_in_round(int64_t round, size_t self, size_t count) {
  const auto others = static_cast<int64_t>(count) - 1;
  const int64_t r = ((round % others) + others) % others;  // a clock may be before 1970
  return (self + static_cast<size_t>(r) + 1) % count;
}

}  // namespace gleaner::probe
