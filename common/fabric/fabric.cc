#include "common/fabric/fabric.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace gleaner::fabric {
namespace {

constexpr size_t kMaxGroupName = 200;  // in bytes; longer names end in the group's number

using Members = std::vector<const LabelledNode*>;

bool is_of_level(const api::StatedUplink& uplink, const placement::LabelLevel& level) {
  return std::ranges::find(level, uplink.level) != level.end();
}

}  // namespace

// Divides the nodes into groups, level by level.
class Fabric::Builder {
 public:
  Builder(const placement::LabelLevels& levels, std::span<const api::StatedUplink> uplinks, Fabric& fabric)
      : levels_(levels), uplinks_(uplinks), fabric_(fabric) {}

  // Adds the groups of these nodes by `level` and all narrower levels, below `parent`. `all`: they are all nodes of
  // `parent`, so that a value that all of them have makes no group.
  void divide(const Members& nodes, size_t level, std::optional<uint32_t> parent, bool all) {
    if (level == levels_.size()) return add_nodes(nodes, parent);
    std::map<std::string, Members> by_value;
    for (const LabelledNode* node : nodes) by_value[value_of(*node, level)].push_back(node);
    if (by_value.size() == 1 && all) return divide(nodes, level + 1, parent, all);
    for (const auto& [value, members] : by_value) {
      if (members.size() == 1) {
        add_nodes(members, parent);
      } else if (value.empty()) {
        divide(members, level + 1, parent, false);
      } else {
        divide(members, level + 1, add_group(value, level, members, parent), true);
      }
    }
  }

 private:
  static const std::string& value_of(const LabelledNode& node, size_t level) {
    return level < node.path.size() ? node.path[level] : node.near;
  }

  void add_nodes(const Members& nodes, std::optional<uint32_t> parent) {
    if (!parent.has_value()) return;
    for (const LabelledNode* node : nodes) {
      fabric_.groups_[*parent].nodes.push_back(node->name);
      fabric_.smallest_group_[node->name] = *parent;
    }
  }

  uint32_t add_group(const std::string& value, size_t level, const Members& members, std::optional<uint32_t> parent) {
    const auto index = static_cast<uint32_t>(fabric_.groups_.size());
    api::TopologyGroup group;
    group.level = levels_[level].front();
    if (parent.has_value()) group.parent = fabric_.groups_[*parent].name;
    group.name = group.parent.empty() ? value : absl::StrCat(group.parent, "/", value);
    // Levels may have equal values, for example if nodes without a zone have a rack with a zone's name.
    if (group.name.size() > kMaxGroupName) group.name = absl::StrCat(value, "#", index);
    if (!names_.insert(group.name).second) group.name = absl::StrCat(group.name, "#", index);
    names_.insert(group.name);
    group.node_count = static_cast<uint32_t>(members.size());
    for (const api::StatedUplink& uplink : uplinks_) {
      if (!is_of_level(uplink, levels_[level]) || (!uplink.group.empty() && uplink.group != value)) continue;
      group.uplink_bits_per_second = uplink.bits_per_second;
      group.uplink_source = api::UplinkSource::kStated;
      if (!fabric_.matches(uplink)) fabric_.matched_.push_back(uplink);
    }
    fabric_.groups_.push_back(std::move(group));
    fabric_.parents_.push_back(parent);
    return index;
  }

  const placement::LabelLevels& levels_;
  const std::span<const api::StatedUplink> uplinks_;
  Fabric& fabric_;
  absl::flat_hash_set<std::string> names_;
};

Fabric Fabric::of_labels(std::vector<LabelledNode> nodes, const placement::LabelLevels& levels,
                         std::span<const api::StatedUplink> uplinks) {
  std::ranges::sort(nodes, {}, &LabelledNode::name);
  Fabric fabric;
  fabric.node_count_ = static_cast<uint32_t>(nodes.size());
  Members members;
  members.reserve(nodes.size());
  for (const LabelledNode& node : nodes) members.push_back(&node);
  placement::LabelLevels all = levels;
  all.push_back({kProbedLevel});
  if (!members.empty()) Builder(all, uplinks, fabric).divide(members, 0, std::nullopt, true);
  std::ranges::copy_if(levels, std::back_inserter(fabric.dividing_levels_), [&](const placement::LabelLevel& level) {
    return std::ranges::find(fabric.groups_, level.front(), &api::TopologyGroup::level) != fabric.groups_.end();
  });
  for (api::TopologyGroup& group : fabric.groups_) std::ranges::sort(group.nodes);
  return fabric;
}

Fabric Fabric::of_status(const api::TopologyStatus& status) {
  Fabric fabric;
  fabric.node_count_ = status.node_count;
  fabric.groups_ = status.groups;
  fabric.core_latency_seconds_ = status.latency_seconds;
  absl::flat_hash_map<std::string, uint32_t> by_name;
  for (uint32_t index = 0; index < fabric.groups_.size(); ++index) {
    const api::TopologyGroup& group = fabric.groups_[index];
    const auto parent = by_name.find(group.parent);
    fabric.parents_.push_back(parent == by_name.end() ? std::nullopt : std::optional(parent->second));
    by_name.emplace(group.name, index);
    for (const std::string& node : group.nodes) fabric.smallest_group_.emplace(node, index);
  }
  return fabric;
}

void Fabric::set_measured_uplinks(std::span<const double> bits_per_second) {
  for (size_t group = 0; group < groups_.size(); ++group) {
    if (groups_[group].uplink_source == api::UplinkSource::kStated) continue;
    groups_[group].uplink_bits_per_second = bits_per_second[group];
    groups_[group].uplink_source =
        bits_per_second[group] > 0 ? api::UplinkSource::kProbes : api::UplinkSource::kAssumed;
  }
}

void Fabric::set_latencies(std::span<const double> of_groups, double core) {
  for (size_t group = 0; group < groups_.size(); ++group) groups_[group].latency_seconds = of_groups[group];
  core_latency_seconds_ = core;
}

bool Fabric::matches(const api::StatedUplink& uplink) const {
  return std::ranges::find(matched_, uplink) != matched_.end();
}

std::optional<uint32_t> Fabric::group_of(absl::string_view node) const {
  const auto found = smallest_group_.find(node);
  return found == smallest_group_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace gleaner::fabric
