#include "agent/probe/choose_peers.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "common/base/mix.h"

namespace gleaner::probe {
namespace {

using Places = std::vector<size_t>;  // of agents, the best first

std::string find(const Texts& texts, const std::string& key) {
  const auto found = texts.find(key);
  return found == texts.end() ? "" : found->second;
}

// Orders places by a hash that is the same for both agents of a pair.
void order(Places& places, const AgentOrder& agents) {
  const auto own = fnv1a<uint64_t>(agents.hosts[agents.self]);
  std::ranges::sort(places, {}, [&](size_t place) {
    return std::pair(splitmix64(own + fnv1a<uint64_t>(agents.hosts[place])), place);
  });
}

void choose(const Places& places, size_t most, std::vector<Need>& needs) {
  for (size_t i = 0; i < std::min(most, places.size()); ++i) needs[places[i]] = Need::kLatency;
}

// Takes one agent of each group in turn, until `most` or a few more are taken.
Places in_turn(const std::map<std::string, Places>& groups, size_t most, const AgentOrder& agents) {
  Places taken;
  for (size_t i = 0; taken.size() < most; ++i) {
    Places next;  // the i-th of each group
    for (const auto& [name, places] : groups) {
      if (i < places.size()) next.push_back(places[i]);
    }
    if (next.empty()) break;
    order(next, agents);  // the names of groups must not decide which of them are taken
    taken.insert(taken.end(), next.begin(), next.end());
  }
  return taken;
}

}  // namespace

Texts group_of_nodes(const api::TopologyStatus& topology) {
  Texts group_of;
  for (const api::TopologyGroup& group : topology.groups) {
    for (const std::string& node : group.nodes) group_of[node] = group.name;
  }
  return group_of;
}

std::vector<Need> choose_peers(const AgentOrder& agents, const Texts& node_of, const Texts& group_of) {
  std::vector<Need> needs(agents.hosts.size(), Need::kNothing);
  const std::string own_group = find(group_of, find(node_of, agents.hosts[agents.self]));
  const bool all = agents.hosts.size() <= kMostPeers + 1;
  Places near;
  std::map<std::string, Places> far;  // by group; those in no group are one
  for (size_t i = 0; i < agents.hosts.size(); ++i) {
    if (i == agents.self) continue;
    const std::string node = find(node_of, agents.hosts[i]);
    const std::string group = find(group_of, node);
    if (all || own_group.empty() || group == own_group) {
      near.push_back(i);
    } else if (node.empty()) {
      needs[i] = Need::kName;
    } else {
      far[group].push_back(i);
    }
  }
  order(near, agents);
  for (auto& [name, places] : far) order(places, agents);
  Places across = in_turn(far, kMostPeers, agents);
  const size_t inside = std::min(near.size(), kMostPeers - std::min(kLeastAcross, across.size()));
  choose(near, inside, needs);
  choose(across, kMostPeers - inside, needs);
  return needs;
}

}  // namespace gleaner::probe
