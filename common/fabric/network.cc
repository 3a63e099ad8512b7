#include "common/fabric/network.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/fabric/group_tree.h"

namespace gleaner::fabric {
namespace {

constexpr char kIsGroup[] = " (group)";  // follows the name of a group that another node of the network has

struct Parts {
  std::vector<topology::Host> hosts;
  std::vector<topology::Switch> switches;
  std::vector<topology::Link> links;
};

// Adds the links of the branch's hosts and smaller branches. Returns the bandwidth of all hosts below it.
double add_links(const GroupTree& tree, uint32_t place, std::span<const Host> hosts, Parts& parts) {
  const auto first_switch = static_cast<uint32_t>(hosts.size());
  const uint32_t own = first_switch + place;
  double all = 0;
  for (const uint32_t host : tree.branches[place].hosts) {
    const double bits = hosts[host].bits_per_second;
    parts.links.push_back({host, own, bits, bits, kLinkLatencySeconds});
    all += bits;
  }
  for (const uint32_t smaller : tree.branches[place].branches) {
    const double below = add_links(tree, smaller, hosts, parts);
    const double stated = tree.branches[smaller].uplink_bits_per_second;
    const double uplink = stated > 0 ? stated : below;
    parts.links.push_back({first_switch + smaller, own, uplink, uplink, kLinkLatencySeconds});
    all += below;
  }
  return all;
}

}  // namespace

absl::StatusOr<topology::Topology> network_of(const Fabric& fabric, std::span<const Host> hosts) {
  Parts parts;
  std::vector<std::string> nodes;
  for (const Host& host : hosts) {
    parts.hosts.push_back({host.name, {}});
    nodes.push_back(host.node);
  }
  const GroupTree tree = tree_of(fabric, nodes);
  absl::flat_hash_set<std::string> taken;
  for (const Host& host : hosts) taken.insert(host.name);
  for (size_t place = 0; place < tree.branches.size(); ++place) {
    const std::optional<uint32_t> group = tree.branches[place].group;
    std::string name = place == 0 ? kCore : fabric.groups()[*group].name;
    while (!taken.insert(name).second) absl::StrAppend(&name, kIsGroup);
    parts.switches.push_back({std::move(name)});
  }
  add_links(tree, 0, hosts, parts);
  return topology::Topology::make(std::move(parts.hosts), std::move(parts.switches), std::move(parts.links));
}

uint32_t switch_of(const topology::Topology& network, std::span<const std::string> groups) {
  for (const std::string& group : groups) {
    for (uint32_t at = 1; at < network.switches().size(); ++at) {
      absl::string_view name = network.switches()[at].name;
      while (absl::ConsumeSuffix(&name, kIsGroup)) {
      }
      if (name == group) return at;
    }
  }
  return 0;
}

}  // namespace gleaner::fabric
