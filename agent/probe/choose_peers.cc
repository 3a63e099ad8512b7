#include "agent/probe/choose_peers.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
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

// Returns the group around a group, by their names.
std::string parent_of(const std::string& group) {
  const size_t slash = group.rfind('/');
  return slash == std::string::npos ? "" : group.substr(0, slash);
}

bool is_below(absl::string_view group, absl::string_view wider) {
  return wider.empty() ? !group.empty() : absl::StartsWith(group, wider) && group.substr(wider.size(), 1) == "/";
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
  const bool all = agents.hosts.size() <= kMostPeers + 1 || group_of.empty();
  // Nodes that are in no smaller group of a divided group are not near each other.
  const bool divided =
      std::ranges::any_of(group_of, [&](const auto& entry) { return is_below(entry.second, own_group); });
  const std::string parent = divided ? own_group : parent_of(own_group);
  Places near;
  std::map<std::string, Places> siblings, others;  // by group; those in no group are one
  for (size_t i = 0; i < agents.hosts.size(); ++i) {
    if (i == agents.self) continue;
    const std::string node = find(node_of, agents.hosts[i]);
    const std::string group = find(group_of, node);
    if (all || (group == own_group && !divided && !node.empty())) {
      near.push_back(i);
    } else if (node.empty()) {
      needs[i] = Need::kName;
    } else {
      (group == parent || is_below(group, parent) ? siblings : others)[group].push_back(i);
    }
  }
  order(near, agents);
  for (auto* groups : {&siblings, &others}) {
    for (auto& [name, places] : *groups) order(places, agents);
  }
  const Places across = in_turn(siblings, kMostPeers, agents), beyond = in_turn(others, kMostPeers, agents);
  const size_t inside = std::min(near.size(), kMostPeers - std::min(kLeastAcross, across.size() + beyond.size()));
  const size_t left = kMostPeers - inside;
  const size_t far = std::min(beyond.size(), left - std::min(across.size(), left - std::min(beyond.size(), left / 4)));
  choose(near, inside, needs);
  choose(across, left - far, needs);
  choose(beyond, far, needs);
  return needs;
}

}  // namespace gleaner::probe
