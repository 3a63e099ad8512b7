#include "agent/probe/representatives.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "common/base/mix.h"

namespace gleaner::probe {
namespace {

using Nodes = std::vector<std::string>;

// Another group, which the agent may measure.
struct OtherGroup {
  uint64_t hash = 0;
  std::string name, node;  // that node is measured
};

Nodes representatives(const api::TopologyGroup& group, const Texts& host_of) {
  const auto seed = splitmix64(fnv1a<uint64_t>(group.name));
  std::vector<std::pair<uint64_t, std::string>> hashed;
  for (const std::string& node : group.nodes) {
    if (host_of.contains(node)) hashed.emplace_back(splitmix64(seed ^ fnv1a<uint64_t>(node)), node);
  }
  std::ranges::sort(hashed);
  Nodes first;
  for (const auto& [hash, node] : hashed) {
    if (first.size() < kRepresentatives) first.push_back(node);
  }
  return first;
}

void take(std::vector<OtherGroup>& groups, size_t most, Nodes& peers) {
  std::ranges::sort(groups, {}, [](const OtherGroup& group) { return std::tie(group.hash, group.name); });
  for (size_t i = 0; i < std::min(most, groups.size()); ++i) peers.push_back(groups[i].node);
}

}  // namespace

std::vector<std::string> bandwidth_peers(const api::TopologyStatus& topology, const Texts& host_of,
                                         const std::string& node) {
  const auto own = std::ranges::find_if(topology.groups, [&](const api::TopologyGroup& group) {
    return std::ranges::find(group.nodes, node) != group.nodes.end();
  });
  if (own == topology.groups.end()) return {};
  const Nodes near = representatives(*own, host_of);
  const auto place = static_cast<size_t>(std::ranges::find(near, node) - near.begin());
  if (place == near.size()) return {};
  std::vector<OtherGroup> siblings, others;
  for (const api::TopologyGroup& group : topology.groups) {
    if (group.name == own->name) continue;
    const Nodes far = representatives(group, host_of);
    if (far.empty()) continue;
    const uint64_t hash = splitmix64(fnv1a<uint64_t>(own->name) + fnv1a<uint64_t>(group.name));
    (group.parent == own->parent ? siblings : others).push_back({hash, group.name, far[place % far.size()]});
  }
  Nodes peers;
  if (near.size() > 1) peers.push_back(near[(place + 1) % near.size()]);
  const size_t reserved = std::min(kLeastOthers, others.size());
  const size_t taken = std::min(siblings.size(), kMostGroups - reserved);
  take(siblings, taken, peers);
  take(others, kMostGroups - taken, peers);
  return peers;
}

}  // namespace gleaner::probe
