#include "common/plan/host_groups.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace gleaner::plan {
namespace {

using topology::Topology;

constexpr uint32_t kNone = UINT32_MAX;
constexpr int kMostJoins = 16;  // heights at which parts join

// Walks the network depth first from a switch. All links then join a node with a node on the path from the root to it.
// The nodes below a node are parted from the rest by its parent if none of their links leads further up.
class Walk {
 public:
  explicit Walk(const Topology& topology)
      : topology_(topology),
        parent_(topology.node_count(), kNone),
        depth_(topology.node_count(), kNone),
        top_(topology.node_count(), kNone),
        boundary_(topology.node_count()) {
    const uint32_t root = topology.switches().empty() ? 0 : topology.host_count();
    depth_[root] = 0;
    order_.push_back(root);
    path_.push_back({root, 0});
    while (!path_.empty()) step();
  }

  GroupTree groups() const;

 private:
  struct Visit {
    uint32_t node = 0;
    uint32_t next = 0;  // the neighbour to look at
  };
  struct Boundary {
    double out = 0, in = 0;
  };

  void step();
  void look_at(const Visit& visit, const Topology::Neighbour& next);

  const Topology& topology_;
  std::vector<uint32_t> parent_, depth_;
  std::vector<uint32_t> top_;       // the least depth to which a link leads from here or below
  std::vector<Boundary> boundary_;  // the links between the node's parent, and the node or nodes below it
  std::vector<uint32_t> order_;     // parents first
  std::vector<Visit> path_;
};

void Walk::step() {
  Visit& visit = path_.back();
  const uint32_t node = visit.node;
  const auto neighbours = topology_.neighbours(node);
  if (visit.next < neighbours.size()) {
    const Topology::Neighbour& next = neighbours[visit.next++];
    look_at(visit, next);
    return;
  }
  path_.pop_back();
  if (!path_.empty()) top_[path_.back().node] = std::min(top_[path_.back().node], top_[node]);
}

// May invalidate `visit`.
void Walk::look_at(const Visit& visit, const Topology::Neighbour& next) {
  const uint32_t node = visit.node;
  if (depth_[next.node] == kNone) {
    parent_[next.node] = node;
    depth_[next.node] = depth_[node] + 1;
    order_.push_back(next.node);
    path_.push_back({next.node, 0});
  } else if (depth_[next.node] < depth_[node]) {
    top_[node] = std::min(top_[node], depth_[next.node]);
    Boundary& below = boundary_[path_[depth_[next.node] + 1].node];
    below.out += topology_.bits_per_second(next.channel);
    below.in += topology_.bits_per_second(next.channel ^ 1);
  }
}

HostGroup alone(const Topology& topology, uint32_t host, uint32_t parent) {
  HostGroup group{.parent = parent, .node = host};
  for (const Topology::Neighbour& next : topology.neighbours(host)) {
    group.out_bits_per_second += topology.bits_per_second(next.channel);
    group.in_bits_per_second += topology.bits_per_second(next.channel ^ 1);
  }
  return group;
}

GroupTree Walk::groups() const {
  GroupTree tree;
  tree.groups.push_back({.node = order_.front()});
  std::vector<bool> is_leaf(topology_.node_count(), true);
  for (const uint32_t node : order_) {
    if (parent_[node] != kNone) is_leaf[parent_[node]] = false;
  }
  std::vector<uint32_t> around(topology_.node_count(), 0);  // by node: the least group with it
  for (const uint32_t node : order_) {
    if (parent_[node] == kNone) continue;
    around[node] = around[parent_[node]];
    const bool is_parted = top_[node] >= depth_[node] - 1;
    if (!is_parted || (topology_.is_host(node) && is_leaf[node])) continue;
    tree.groups.push_back({.parent = around[node],
                           .node = node,
                           .out_bits_per_second = boundary_[node].out,
                           .in_bits_per_second = boundary_[node].in});
    around[node] = static_cast<uint32_t>(tree.groups.size() - 1);
  }
  for (uint32_t host = 0; host < topology_.host_count(); ++host) {
    tree.group_of_host.push_back(static_cast<uint32_t>(tree.groups.size()));
    tree.groups.push_back(alone(topology_, host, around[host]));
  }
  return tree;
}

// Joins nodes from the hosts up. Groups come before the groups around them until finish().
class Joining {
 public:
  explicit Joining(const Topology& topology)
      : topology_(topology),
        parts_(topology.host_count()),
        part_of_(topology.node_count()),
        outer_(topology.host_count()) {
    std::iota(part_of_.begin(), part_of_.end(), 0);
    for (uint32_t host = 0; host < topology.host_count(); ++host) {
      outer_[host] = host;
      groups_.push_back(alone(topology, host, 0));
    }
  }

  // Returns whether this joined two parts with hosts.
  bool join(uint32_t a, uint32_t b) {
    const uint32_t first = part(a), second = part(b);
    if (first == second) return false;
    part_of_[std::max(first, second)] = std::min(first, second);
    if (!topology_.is_host(std::max(first, second))) return false;
    --parts_;
    return true;
  }
  // Makes a group of each part that has a host, unless one has them all.
  void add_groups();
  GroupTree finish() &&;

 private:
  uint32_t part(uint32_t node) {
    while (part_of_[node] != node) node = part_of_[node] = part_of_[part_of_[node]];
    return node;
  }

  const Topology& topology_;
  uint32_t parts_;                 // with hosts
  std::vector<uint32_t> part_of_;  // by node; a part's first node is its own, a host if the part has one
  std::vector<uint32_t> outer_;    // by host: the last group of the part whose first node it is; kNone: of no part
  std::vector<HostGroup> groups_;
};

void Joining::add_groups() {
  if (parts_ == 1) return;
  std::vector<uint32_t> group_of(topology_.node_count(), kNone);  // by a part's first node
  const auto new_group_of = [&](uint32_t node) -> HostGroup* {
    const uint32_t index = group_of[part(node)];
    return index == kNone ? nullptr : &groups_[index];
  };
  for (uint32_t host = 0; host < topology_.host_count(); ++host) {
    uint32_t& index = group_of[part(host)];
    if (index == kNone) {
      index = static_cast<uint32_t>(groups_.size());
      groups_.push_back({.node = host});
    }
    if (outer_[host] == kNone) continue;
    groups_[outer_[host]].parent = index;  // `host` was the first node of its part until now
    outer_[host] = part(host) == host ? index : kNone;
  }
  for (uint32_t node = topology_.node_count(); node-- > topology_.host_count();) {
    if (HostGroup* group = new_group_of(node)) group->node = node;
  }
  for (const topology::Link& link : topology_.links()) {
    if (part(link.a) == part(link.b)) continue;
    if (HostGroup* group = new_group_of(link.a)) {
      group->out_bits_per_second += link.bits_per_second;
      group->in_bits_per_second += link.back_bits_per_second;
    }
    if (HostGroup* group = new_group_of(link.b)) {
      group->out_bits_per_second += link.back_bits_per_second;
      group->in_bits_per_second += link.bits_per_second;
    }
  }
}

GroupTree Joining::finish() && {
  const auto root = static_cast<uint32_t>(groups_.size());
  GroupTree tree;
  tree.groups.push_back({.node = topology_.switches().empty() ? 0 : topology_.host_count()});
  std::vector<bool> is_outer(groups_.size(), false);
  for (const uint32_t group : outer_) {
    if (group != kNone) is_outer[group] = true;
  }
  for (uint32_t i = root; i-- > 0;) {
    HostGroup& group = tree.groups.emplace_back(groups_[i]);
    group.parent = is_outer[i] ? 0 : root - group.parent;
  }
  for (uint32_t host = 0; host < topology_.host_count(); ++host) tree.group_of_host.push_back(root - host);
  return tree;
}

// Returns each node's distance to the nearest host.
std::vector<uint32_t> heights(const Topology& topology) {
  std::vector<uint32_t> height(topology.node_count(), kNone), nodes(topology.host_count());
  std::iota(nodes.begin(), nodes.end(), 0);
  for (const uint32_t host : nodes) height[host] = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const Topology::Neighbour& next : topology.neighbours(nodes[i])) {
      if (height[next.node] != kNone) continue;
      height[next.node] = height[nodes[i]] + 1;
      nodes.push_back(next.node);
    }
  }
  return height;
}

}  // namespace

GroupTree groups_behind_switches(const Topology& topology) { return Walk(topology).groups(); }

GroupTree groups_by_height(const Topology& topology) {
  Joining joining(topology);
  for (uint32_t host = 0; host < topology.host_count(); ++host) {
    const auto neighbours = topology.neighbours(host);
    const auto first = std::ranges::find_if(neighbours, [&](const auto& next) { return !topology.is_host(next.node); });
    if (first != neighbours.end()) joining.join(host, first->node);
  }
  joining.add_groups();
  const std::vector<uint32_t> height = heights(topology);
  const auto height_of = [&](uint32_t link) {
    return std::max(height[topology.links()[link].a], height[topology.links()[link].b]);
  };
  std::vector<uint32_t> links(topology.links().size());
  std::iota(links.begin(), links.end(), 0);
  std::ranges::stable_sort(links, {}, height_of);
  int joins = 0;
  for (size_t first = 0, next; first < links.size() && joins < kMostJoins; first = next) {
    bool joined = false;
    for (next = first; next < links.size() && height_of(links[next]) == height_of(links[first]); ++next) {
      const topology::Link& link = topology.links()[links[next]];
      joined |= joining.join(link.a, link.b);
    }
    if (joined) joining.add_groups(), ++joins;
  }
  return std::move(joining).finish();
}

}  // namespace gleaner::plan
