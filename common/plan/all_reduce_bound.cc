#include "common/plan/all_reduce_bound.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/plan/host_groups.h"

namespace gleaner::plan {
namespace {

using topology::Topology;

constexpr double kEqual = 1e-9;   // relative difference of bounds that count as equal
constexpr int kMostRounds = 50;   // of Dinkelbach's method, which needs a few
constexpr size_t kMostNames = 3;  // in a description

enum class Direction { kMean, kOut, kIn };

// The members in a group or in a part of a partition.
struct Members {
  uint32_t workers = 0;
  uint32_t all = 0;
};

// A partition: the outermost groups inside `top` that hold what is in it, and the rest of the network as one part.
struct Cut {
  uint32_t top = 0;
  std::vector<uint32_t> groups;
  bool has_rest = false;
};

class BestPartition {
 public:
  BestPartition(const GroupTree& tree, std::span<const uint32_t> host_of, uint32_t workers);

  // Replaces `bound`, for one byte, if a link or a partition has a greater one.
  void raise(AllReduceBound& bound);

 private:
  void raise_by_one_link(AllReduceBound& bound) const;
  void raise_by_partition(AllReduceBound& bound, Direction direction);
  Members outside(uint32_t group) const {
    return {members_[0].workers - members_[group].workers, members_[0].all - members_[group].all};
  }
  // Returns the part of the objective that a part has, if it is not divided.
  double undivided(const Members& members, double bits_per_second) const;
  double bandwidth(uint32_t group, Direction direction, bool of_rest) const;
  Cut search(Direction direction);
  std::vector<uint32_t> divide(uint32_t top, Direction direction) const;
  double seconds_of(const Cut& partition, Direction direction);
  double summers_worth(Direction direction, double parts) const {
    return (parts - 2) / (direction == Direction::kMean ? parts : parts - 1);
  }

  const GroupTree& tree_;
  std::vector<Members> members_;  // by group
  std::vector<bool> has_groups_;  // by group: inside
  std::vector<double> best_;      // by group: its part of the objective
  std::vector<double> divided_;   // by group: the same if it is divided
  double seconds_per_bit_ = 0;    // T of the objective
  double worth_ = 0;              // of a summer's bandwidth, in the objective
};

BestPartition::BestPartition(const GroupTree& tree, std::span<const uint32_t> host_of, uint32_t workers)
    : tree_(tree),
      members_(tree.groups.size()),
      has_groups_(tree.groups.size(), false),
      best_(tree.groups.size()),
      divided_(tree.groups.size()) {
  for (uint32_t member = 0; member < host_of.size(); ++member) {
    members_[tree.group_of_host[host_of[member]]] = {member < workers ? 1u : 0u, 1};
  }
  for (size_t i = tree.groups.size(); i-- > 1;) {
    const uint32_t parent = tree.groups[i].parent;
    members_[parent].workers += members_[i].workers;
    members_[parent].all += members_[i].all;
    has_groups_[parent] = true;
  }
}

void BestPartition::raise_by_one_link(AllReduceBound& bound) const {
  for (uint32_t i = 1; i < tree_.groups.size(); ++i) {
    const HostGroup& group = tree_.groups[i];
    if (members_[i].workers == 0 || outside(i).workers == 0) continue;
    const double seconds = 8 / std::min(group.out_bits_per_second, group.in_bits_per_second);
    if (seconds > bound.seconds * (1 + kEqual)) bound = {seconds, {group.node}};
  }
}

double BestPartition::bandwidth(uint32_t index, Direction direction, bool of_rest) const {
  const HostGroup& group = tree_.groups[index];
  if (direction == Direction::kMean) return group.out_bits_per_second / 2 + group.in_bits_per_second / 2;
  return (direction == Direction::kOut) != of_rest ? group.out_bits_per_second : group.in_bits_per_second;
}

double BestPartition::undivided(const Members& members, double bits_per_second) const {
  if (members.workers > 0) return 2 - seconds_per_bit_ * bits_per_second;
  return members.all > 0 ? -seconds_per_bit_ * worth_ * bits_per_second : 0;
}

// Returns the partition with the greatest objective.
Cut BestPartition::search(Direction direction) {
  std::ranges::fill(divided_, 0);
  for (uint32_t i = static_cast<uint32_t>(tree_.groups.size()); i-- > 0;) {
    best_[i] = divided_[i];
    if (i == 0) break;
    const double whole = undivided(members_[i], bandwidth(i, direction, false));
    if (!has_groups_[i] || whole > divided_[i]) best_[i] = whole;
    divided_[tree_.groups[i].parent] += best_[i];
  }
  Cut best;
  double most = divided_[0];
  for (uint32_t i = 1; i < tree_.groups.size(); ++i) {
    if (!has_groups_[i] || members_[i].all == 0) continue;
    const double all = divided_[i] + undivided(outside(i), bandwidth(i, direction, true));
    if (all > most) most = all, best = {.top = i, .has_rest = outside(i).all > 0};
  }
  best.groups = divide(best.top, direction);
  return best;
}

// Returns the outermost groups inside `top`, with members, that are better whole than divided.
std::vector<uint32_t> BestPartition::divide(uint32_t top, Direction direction) const {
  std::vector<bool> is_open(tree_.groups.size(), false);
  is_open[top] = true;
  std::vector<uint32_t> groups;
  for (uint32_t i = 1; i < tree_.groups.size(); ++i) {
    if (!is_open[tree_.groups[i].parent] || members_[i].all == 0) continue;
    const double whole = undivided(members_[i], bandwidth(i, direction, false));
    if (has_groups_[i] && whole <= divided_[i]) {
      is_open[i] = true;
    } else {
      groups.push_back(i);
    }
  }
  return groups;
}

// Returns the bound of a partition for one bit, and sets the worth of its summers.
double BestPartition::seconds_of(const Cut& partition, Direction direction) {
  double parts = 0, workers = 0, summers = 0;
  const auto add = [&](const Members& members, double bits_per_second) {
    (members.workers > 0 ? workers : summers) += bits_per_second;
    if (members.workers > 0) parts += 1;
  };
  for (const uint32_t group : partition.groups) add(members_[group], bandwidth(group, direction, false));
  if (partition.has_rest) add(outside(partition.top), bandwidth(partition.top, direction, true));
  if (parts < 2) return 0;
  worth_ = summers_worth(direction, parts);
  return 2 * (parts - 1) / (workers + worth_ * summers);
}

void BestPartition::raise_by_partition(AllReduceBound& bound, Direction direction) {
  seconds_per_bit_ = 0;
  worth_ = summers_worth(direction, members_[0].workers);
  for (int round = 0; round < kMostRounds; ++round) {
    Cut partition = search(direction);
    const double seconds = seconds_of(partition, direction);
    if (seconds <= seconds_per_bit_ * (1 + kEqual)) break;
    seconds_per_bit_ = seconds;
    if (seconds * 8 <= bound.seconds * (1 + kEqual)) continue;
    bound = {seconds * 8, {}};
    for (const uint32_t group : partition.groups) bound.limits.push_back(tree_.groups[group].node);
    if (partition.has_rest) bound.limits.push_back(tree_.groups[partition.top].node);
  }
}

void BestPartition::raise(AllReduceBound& bound) {
  for (const Direction direction : {Direction::kMean, Direction::kOut, Direction::kIn}) {
    raise_by_partition(bound, direction);
  }
  raise_by_one_link(bound);
}

}  // namespace

AllReduceBound all_reduce_bound(const Topology& topology, std::span<const uint32_t> host_of, uint32_t workers,
                                double bytes) {
  AllReduceBound bound;
  if (workers < 2) return bound;
  for (const GroupTree& tree : {groups_behind_switches(topology), groups_by_height(topology)}) {
    BestPartition(tree, host_of, workers).raise(bound);
  }
  bound.seconds *= bytes;
  std::ranges::sort(bound.limits);
  return bound;
}

std::string describe_limits(const AllReduceBound& bound, const Topology& topology) {
  const auto first_switch = std::ranges::find_if(bound.limits, [&](uint32_t node) { return !topology.is_host(node); });
  const auto described = [&](auto first, auto end, absl::string_view links, absl::string_view noun) -> std::string {
    const auto count = static_cast<size_t>(end - first);
    if (count == 1) return absl::StrCat(topology.name(*first), "'s ", links);
    if (count > kMostNames) return absl::StrCat("the ", links, "s of ", count, " ", noun);
    std::string names;
    for (auto at = first; at != end; ++at) {
      absl::StrAppend(&names, at == first ? "" : at + 1 == end ? " and " : ", ", topology.name(*at));
    }
    return absl::StrCat("the ", links, "s of ", names);
  };
  std::vector<std::string> parts;  // nodes are in their order, hosts first
  if (first_switch != bound.limits.begin()) {
    parts.push_back(described(bound.limits.begin(), first_switch, "link", "hosts"));
  }
  if (first_switch != bound.limits.end()) {
    parts.push_back(described(first_switch, bound.limits.end(), "uplink", "switches"));
  }
  return absl::StrJoin(parts, " and ");
}

}  // namespace gleaner::plan
