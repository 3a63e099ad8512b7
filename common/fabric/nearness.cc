#include "common/fabric/nearness.h"

#include <optional>

namespace gleaner::fabric {

Nearness::Nearness(const Fabric& fabric, std::span<const std::string> worker_nodes) : fabric_(fabric) {
  for (const std::string& node : worker_nodes) {
    std::optional<uint32_t> group = fabric.group_of(node);
    while (group.has_value() && of_workers_.insert(*group).second) group = fabric.parent_of(*group);
  }
}

uint32_t Nearness::of(absl::string_view node) const {
  uint32_t shared = 0;
  for (std::optional<uint32_t> group = fabric_.group_of(node); group.has_value(); group = fabric_.parent_of(*group)) {
    shared += of_workers_.contains(*group) ? 1 : 0;
  }
  return shared;
}

}  // namespace gleaner::fabric
