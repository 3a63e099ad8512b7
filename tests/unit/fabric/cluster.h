// Nodes of tests, by their labels of three levels: zone, rack and block.
#pragma once

#include <string>
#include <vector>

#include "common/fabric/fabric.h"

namespace gleaner::fabric {

inline const placement::LabelLevels kLevels = {{"zone"}, {"rack", "row"}, {"block"}};

inline LabelledNode node(const std::string& name, const std::string& zone, const std::string& rack,
                         const std::string& block = "") {
  return {name, {zone, rack, block}};
}

// Two racks of two nodes in zone a, a rack in zone b, and a node without labels.
inline Fabric small_cluster(const std::vector<api::StatedUplink>& uplinks = {}) {
  return Fabric::of_labels({node("n6", "", ""), node("n1", "a", "r1"), node("n2", "a", "r1"), node("n3", "a", "r2"),
                            node("n4", "a", "r2"), node("n5", "b", "r1"), node("n7", "b", "r1")},
                           kLevels, uplinks);
}

}  // namespace gleaner::fabric
