#include "common/fabric/measured_uplinks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/base/median.h"
#include "common/fabric/group_tree.h"

namespace gleaner::fabric {
namespace {

double own_link(const Profiles& profiles, const std::string& node) {
  const auto found = profiles.find(node);
  return found == profiles.end() ? 0 : found->second->status.bits_per_second;
}

struct Bandwidth {
  double bits_per_second = 0;
  double part = 0;  // of what the slower one of both nodes' own links carries; 0: unknown
};

// Bandwidths by the node whose agent has measured them. An agent may state any number, and all count as one.
using ByAgent = std::map<std::string, std::vector<Bandwidth>>;

// Returns the median over all agents of the median of each agent's bandwidths; 0 if there are none.
double usual(const ByAgent& by_agent, double Bandwidth::*value) {
  std::vector<double> of_agents;
  for (const auto& [agent, bandwidths] : by_agent) {
    std::vector<double> values;
    for (const Bandwidth& each : bandwidths) values.push_back(each.*value);
    of_agents.push_back(upper_median(std::move(values)));
  }
  return upper_median(std::move(of_agents));
}

class Measurements {
 public:
  Measurements(const Fabric& fabric, const Profiles& profiles, absl::Time now) : fabric_(fabric) {
    for (const auto& [node, profile] : profiles) {
      for (const api::PeerBandwidth& peer : profile->status.peer_bandwidths) {
        if (peer.node == node || !counts(peer.observed_time, now)) continue;
        const double one = own_link(profiles, node), other = own_link(profiles, peer.node);
        const double slower = one > 0 && other > 0 ? std::min(one, other) : std::max(one, other);
        // No path is faster than the nodes' own links, whatever an agent says.
        const double bits = slower > 0 ? std::min(peer.bits_per_second, slower) : peer.bits_per_second;
        add(node, peer.node, {bits, slower > 0 ? bits / slower : 0});
      }
    }
  }

  std::vector<double> uplinks() const {
    const double usual_within = within_.empty() ? 1 : usual(within_, &Bandwidth::part);
    std::vector<double> uplinks(fabric_.groups().size(), 0);
    for (const auto& [group, others] : across_) {
      double fastest = 0, part = 0;
      for (const auto& [other, by_agent] : others) {
        fastest = std::max(fastest, usual(by_agent, &Bandwidth::bits_per_second));
        part = std::max(part, usual(by_agent, &Bandwidth::part));
      }
      if (part > 0 && part < kSlowUplink * usual_within) uplinks[group] = fastest;
    }
    return uplinks;
  }

 private:
  void add(const std::string& from, const std::string& to, Bandwidth bandwidth) {
    const std::vector<uint32_t> one = groups_of(fabric_, from), other = groups_of(fabric_, to);
    // Agents measure nodes of groups alone. So one of the nodes has left its group, or the cluster, and the path may
    // have been within it.
    if (one.empty() || other.empty()) return;
    if (one.front() == other.front()) {
      if (bandwidth.part > 0) within_[from].push_back(bandwidth);
      return;
    }
    add_across(one, other, from, bandwidth);
    add_across(other, one, from, bandwidth);
  }

  // Adds a bandwidth of a path that leaves the groups of `from` which the groups of `to` do not have.
  void add_across(const std::vector<uint32_t>& from, const std::vector<uint32_t>& to, const std::string& agent,
                  Bandwidth bandwidth) {
    const auto has = [](const std::vector<uint32_t>& groups, uint32_t group) {
      return std::ranges::find(groups, group) != groups.end();
    };
    std::optional<uint32_t> beyond;  // the widest group that the path enters; nullopt: it enters none
    for (const uint32_t group : to) {
      if (!has(from, group)) beyond = group;
    }
    for (const uint32_t group : from) {
      if (!has(to, group)) across_[group][beyond][agent].push_back(bandwidth);
    }
  }

  const Fabric& fabric_;
  ByAgent within_;                                                         // those with a known part
  std::map<uint32_t, std::map<std::optional<uint32_t>, ByAgent>> across_;  // by group, then other group
};

}  // namespace

std::vector<double> measured_uplinks(const Fabric& fabric, const Profiles& profiles, absl::Time now) {
  return Measurements(fabric, profiles, now).uplinks();
}

}  // namespace gleaner::fabric
