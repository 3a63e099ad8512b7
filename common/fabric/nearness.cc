#include "common/fabric/nearness.h"

#include <algorithm>
#include <optional>

#include "common/fabric/group_tree.h"

namespace gleaner::fabric {

Nearness::Nearness(const Fabric& fabric, std::span<const std::string> worker_nodes) : fabric_(fabric) {
  for (const std::string& node : worker_nodes) {
    std::optional<uint32_t> group = fabric.group_of(node);
    while (group.has_value() && of_workers_.insert(*group).second) group = fabric.parent_of(*group);
  }
}

uint32_t Nearness::of(absl::string_view node) const {
  return static_cast<uint32_t>(
      std::ranges::count_if(groups_of(fabric_, node), [this](uint32_t group) { return of_workers_.contains(group); }));
}

}  // namespace gleaner::fabric
