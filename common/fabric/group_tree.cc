#include "common/fabric/group_tree.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace gleaner::fabric {
namespace {

using Branch = GroupTree::Branch;

double slower_known(double one, double other) {
  if (one <= 0 || other <= 0) return std::max(one, other);
  return std::min(one, other);
}

double nearest_known_latency(const Fabric& fabric, std::optional<uint32_t> group) {
  for (; group.has_value(); group = fabric.parent_of(*group)) {
    if (fabric.groups()[*group].latency_seconds > 0) return fabric.groups()[*group].latency_seconds;
  }
  return fabric.core_latency_seconds();
}

// Inserts all hosts with all groups of their nodes.
class FullTree {
 public:
  FullTree(const Fabric& fabric, std::span<const std::string> nodes) : fabric_(fabric), branches_(1) {
    for (uint32_t host = 0; host < nodes.size(); ++host) {
      uint32_t branch = 0;
      std::vector<uint32_t> groups = groups_of(fabric, nodes[host]);
      std::ranges::reverse(groups);
      for (const uint32_t group : groups) branch = child_of(branch, group, host);
      branches_[branch].hosts.push_back(host);
    }
  }

  // Copies the branches that divide the hosts, from `branch` on. Returns the place of the copy.
  uint32_t copy(uint32_t branch, GroupTree& tree) const {
    const auto place = static_cast<uint32_t>(tree.branches.size());
    tree.branches.push_back(
        {branches_[branch].group, branches_[branch].uplink_bits_per_second, {}, {}, branches_[branch].first});
    while (branches_[branch].hosts.empty() && branches_[branch].branches.size() == 1) {
      branch = branches_[branch].branches.front();
      double& uplink = tree.branches[place].uplink_bits_per_second;
      // Nothing is beyond the root, so the uplinks of groups with all hosts do not count.
      if (place > 0) uplink = slower_known(uplink, branches_[branch].uplink_bits_per_second);
    }
    // Hosts part at the narrowest group that has them all.
    tree.branches[place].latency_seconds = nearest_known_latency(fabric_, branches_[branch].group);
    tree.branches[place].hosts = branches_[branch].hosts;
    std::vector<uint32_t> copies;
    for (const uint32_t smaller : branches_[branch].branches) copies.push_back(copy(smaller, tree));
    tree.branches[place].branches = std::move(copies);
    return place;
  }

 private:
  uint32_t child_of(uint32_t branch, uint32_t group, uint32_t host) {
    const auto [found, added] = by_group_.try_emplace(group, static_cast<uint32_t>(branches_.size()));
    if (added) {
      branches_[branch].branches.push_back(found->second);
      branches_.push_back({group, fabric_.groups()[group].uplink_bits_per_second, {}, {}, host});
    }
    return found->second;
  }

  const Fabric& fabric_;
  std::vector<Branch> branches_;
  std::map<uint32_t, uint32_t> by_group_;
};

void visit(const GroupTree& tree, uint32_t place, std::vector<HostGroup>& groups) {
  const Branch& branch = tree.branches[place];
  bool hosts_are_left = !branch.hosts.empty();
  const auto add_hosts = [&] {
    groups.push_back({branch.group, branch.uplink_bits_per_second, branch.hosts});
    hosts_are_left = false;
  };
  for (const uint32_t smaller : branch.branches) {
    if (hosts_are_left && branch.hosts.front() < tree.branches[smaller].first) add_hosts();
    visit(tree, smaller, groups);
  }
  if (hosts_are_left) add_hosts();
}

}  // namespace

std::vector<uint32_t> groups_of(const Fabric& fabric, absl::string_view node) {
  std::vector<uint32_t> groups;
  for (std::optional<uint32_t> group = fabric.group_of(node); group.has_value(); group = fabric.parent_of(*group)) {
    groups.push_back(*group);
  }
  return groups;
}

std::vector<std::string> group_names_of(const Fabric& fabric, absl::string_view node) {
  std::vector<std::string> names;
  for (const uint32_t group : groups_of(fabric, node)) names.push_back(fabric.groups()[group].name);
  return names;
}

GroupTree tree_of(const Fabric& fabric, std::span<const std::string> nodes) {
  GroupTree tree;
  FullTree(fabric, nodes).copy(0, tree);
  return tree;
}

std::vector<HostGroup> near_first(const GroupTree& tree) {
  std::vector<HostGroup> groups;
  visit(tree, 0, groups);
  return groups;
}

}  // namespace gleaner::fabric
