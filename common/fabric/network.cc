#include "common/fabric/network.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/fabric/group_tree.h"

namespace gleaner::fabric {
namespace {

constexpr char kIsGroup[] = " (group)";  // follows the name of a group that another node of the network has

GroupTree tree_of_hosts(const Fabric& fabric, std::span<const Host> hosts) {
  std::vector<std::string> nodes;
  for (const Host& host : hosts) nodes.push_back(host.node);
  return tree_of(fabric, nodes);
}

// Latencies are whole nanoseconds, so halves of them have one decimal place.
double half(double seconds) { return std::round(seconds * 0.5e10) / 1e10; }

// The latencies of links, by the branches of a tree.
class Latencies {
 public:
  explicit Latencies(const GroupTree& tree) {
    const std::vector<GroupTree::Branch>& branches = tree.branches;
    for (const GroupTree::Branch& branch : branches) of_paths_.push_back(branch.latency_seconds);
    // A smaller branch comes after its parent.
    for (size_t place = branches.size(); place-- > 0;) {
      if (of_paths_[place] > 0) continue;
      for (const uint32_t smaller : branches[place].branches) {
        of_paths_[place] = std::max(of_paths_[place], of_paths_[smaller]);
      }
    }
    for (size_t place = 0; place < branches.size(); ++place) {
      for (const uint32_t smaller : branches[place].branches) {
        if (of_paths_[smaller] <= 0) of_paths_[smaller] = of_paths_[place];
      }
    }
  }

  double of_host(uint32_t branch) const { return is_known() ? half(of_paths_[branch]) : kLinkLatencySeconds; }
  double of_uplink(uint32_t branch, uint32_t parent) const {
    return is_known() ? std::max(0.0, half(of_paths_[parent] - of_paths_[branch])) : kLinkLatencySeconds;
  }

 private:
  // If one latency is known, the root has one, and so each branch.
  bool is_known() const { return of_paths_.front() > 0; }

  std::vector<double> of_paths_;  // between two hosts that share no smaller branch
};

struct Parts {
  std::vector<topology::Host> hosts;
  std::vector<topology::Switch> switches;
  std::vector<topology::Link> links;
};

// Adds the links of the branch's hosts and smaller branches. Returns the bandwidth of all hosts below it.
double add_links(const GroupTree& tree, const Latencies& latencies, uint32_t place, std::span<const Host> hosts,
                 double plenty, Parts& parts) {
  const auto first_switch = static_cast<uint32_t>(hosts.size());
  const uint32_t own = first_switch + place;
  double all = 0;
  for (const uint32_t host : tree.branches[place].hosts) {
    const double bits = hosts[host].bits_per_second;
    parts.links.push_back({host, own, bits, bits, latencies.of_host(place)});
    all += bits;
  }
  for (const uint32_t smaller : tree.branches[place].branches) {
    const double below = add_links(tree, latencies, smaller, hosts, plenty, parts);
    const double stated = tree.branches[smaller].uplink_bits_per_second;
    const double uplink = stated > 0 ? stated : plenty * below;
    parts.links.push_back({first_switch + smaller, own, uplink, uplink, latencies.of_uplink(smaller, place)});
    all += below;
  }
  return all;
}

}  // namespace

absl::StatusOr<topology::Topology> network_of(const Fabric& fabric, std::span<const Host> hosts, double plenty) {
  Parts parts;
  for (const Host& host : hosts) parts.hosts.push_back({host.name, {}});
  const GroupTree tree = tree_of_hosts(fabric, hosts);
  absl::flat_hash_set<std::string> taken;
  for (const Host& host : hosts) taken.insert(host.name);
  for (size_t place = 0; place < tree.branches.size(); ++place) {
    const std::optional<uint32_t> group = tree.branches[place].group;
    std::string name = place == 0 ? kCore : fabric.groups()[*group].name;
    while (!taken.insert(name).second) absl::StrAppend(&name, kIsGroup);
    parts.switches.push_back({std::move(name)});
  }
  add_links(tree, Latencies(tree), 0, hosts, plenty, parts);
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

std::vector<double> latencies_at_switches(const Fabric& fabric, std::span<const Host> hosts) {
  const GroupTree tree = tree_of_hosts(fabric, hosts);
  const Latencies latencies(tree);
  std::vector<double> of_hosts;
  for (uint32_t branch = 0; branch < tree.branches.size(); ++branch) of_hosts.push_back(latencies.of_host(branch));
  return of_hosts;
}

}  // namespace gleaner::fabric
