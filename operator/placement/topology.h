// How near two machines are, by labels of their nodes. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace gleaner::placement {

// Label names, widest first: region, zone, then what clouds and topology tools say of blocks and racks.
std::vector<std::string> default_topology();

// A machine's values of these labels, in the same order; empty: it has none.
using TopologyPath = std::vector<std::string>;
TopologyPath topology_path(const absl::flat_hash_map<std::string, std::string>& labels,
                           const std::vector<std::string>& topology);

// 0 ... 1: of the levels that either machine has, how many they share before the first that differs. Both paths have
// the same length. 0 when neither has any.
double nearness(const TopologyPath& one, const TopologyPath& other);

}  // namespace gleaner::placement
