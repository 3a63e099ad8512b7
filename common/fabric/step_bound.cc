#include "common/fabric/step_bound.h"

#include <algorithm>
#include <utility>

#include "common/fabric/group_tree.h"

namespace gleaner::fabric {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double bits_of_uplink(const api::TopologyGroup& group) {
  return group.uplink_bits_per_second > 0 ? group.uplink_bits_per_second : kInfinity;
}

}  // namespace

StepBound::StepBound(const Fabric& fabric, double push_ratio)
    : fabric_(fabric), push_ratio_(push_ratio), branches_(1) {}

uint32_t StepBound::branch_of(std::optional<uint32_t> group) {
  if (!group.has_value()) return 0;
  if (const auto found = by_group_.find(*group); found != by_group_.end()) return found->second;
  plan::Branch branch{.parent = branch_of(fabric_.parent_of(*group)),
                      .bits_per_second = bits_of_uplink(fabric_.groups()[*group])};
  const auto index = static_cast<uint32_t>(branches_.size());
  branches_.push_back(branch);
  by_group_.emplace(*group, index);
  return index;
}

void StepBound::add(absl::string_view node, double bits_per_second, bool is_worker) {
  const uint32_t parent = branch_of(fabric_.group_of(node));
  branches_.push_back(
      {.parent = parent, .bits_per_second = bits_per_second, .workers = is_worker ? 1.0 : 0.0, .is_member = true});
  workers_ += is_worker ? 1 : 0;
}

double StepBound::seconds_per_byte() const { return least_seconds_per_byte(branches_, kInfinity); }

double StepBound::with_summer(absl::string_view node, double bits_per_second, double most) const {
  // A group without members has one member then, so its uplink carries what the link of its member does.
  std::optional<uint32_t> group = fabric_.group_of(node);
  for (; group.has_value() && !by_group_.contains(*group); group = fabric_.parent_of(*group)) {
    bits_per_second = std::min(bits_per_second, bits_of_uplink(fabric_.groups()[*group]));
  }
  std::vector<plan::Branch> branches = branches_;
  branches.push_back(
      {.parent = group.has_value() ? by_group_.at(*group) : 0, .bits_per_second = bits_per_second, .is_member = true});
  return least_seconds_per_byte(std::move(branches), most);
}

double StepBound::least_seconds_per_byte(std::vector<plan::Branch> branches, double most) const {
  if (workers_ < 2) return 0;  // the worker's own summer owns everything
  plan::LinkTree tree(std::move(branches));
  tree.set_push_ratio(push_ratio_);
  return 8 * tree.least_seconds_per_bit(most / 8);
}

bool has_known_uplinks(const Fabric& fabric, const std::vector<std::string>& nodes) {
  const auto is_known = [](const api::TopologyGroup& group) { return group.uplink_bits_per_second > 0; };
  if (std::ranges::none_of(fabric.groups(), is_known)) return false;
  const GroupTree tree = tree_of(fabric, nodes);
  return std::any_of(tree.branches.begin() + 1, tree.branches.end(),
                     [](const GroupTree::Branch& branch) { return branch.uplink_bits_per_second > 0; });
}

}  // namespace gleaner::fabric
