#include "common/fabric/group_latencies.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "common/base/median.h"

namespace gleaner::fabric {
namespace {

constexpr double kNoise = 1.25;  // a factor

using Group = std::optional<uint32_t>;  // nullopt: the core

// Returns the smallest group that contains both. A group comes after its parent, and the core is the least value.
Group common_group(const Fabric& fabric, Group one, Group other) {
  while (one != other) {
    Group& later = one > other ? one : other;
    later = fabric.parent_of(*later);
  }
  return one;
}

}  // namespace

GroupLatencies group_latencies(const Fabric& fabric, const Profiles& profiles, std::span<const std::string> implausible,
                               absl::Time now) {
  std::map<Group, std::vector<double>> usual;  // by group: the median of each agent
  for (const auto& [node, profile] : profiles) {
    if (std::ranges::binary_search(implausible, node)) continue;
    std::map<Group, std::vector<double>> own;
    for (const api::PeerLatency& peer : profile->status.peers) {
      if (peer.node == node || peer.round_trip <= absl::ZeroDuration() || !counts(peer.observed_time, now)) continue;
      if (!profiles.contains(peer.node)) continue;
      const Group group = common_group(fabric, fabric.group_of(node), fabric.group_of(peer.node));
      own[group].push_back(absl::ToDoubleSeconds(peer.round_trip) / 2);
    }
    for (auto& [group, latencies] : own) usual[group].push_back(upper_median(std::move(latencies)));
  }
  GroupLatencies found{std::vector<double>(fabric.groups().size(), 0), 0};
  for (auto& [group, of_agents] : usual) {
    (group.has_value() ? found.of_groups[*group] : found.core) = upper_median(std::move(of_agents));
  }
  return found;
}

double settled_latency(double before, double measured) {
  if (measured <= 0) return 0;
  if (measured <= kNoise * before && before <= kNoise * measured) return before;
  const double nanoseconds = measured * 1e9;
  double unit = 1;
  while (nanoseconds / unit >= 100) unit *= 10;
  return std::round(nanoseconds / unit) * unit / 1e9;
}

}  // namespace gleaner::fabric
