// How near two machines are, by labels of their nodes. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
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

// Where the workers of a job are placed already, for scores of many machines: it costs a machine's labels, and each
// pair of different paths once.
class Neighbourhood {
 public:
  Neighbourhood(const std::vector<const absl::flat_hash_map<std::string, std::string>*>& placed_labels,
                std::vector<std::string> topology);
  // The mean nearness of a machine to those placed, 0 ... 100; 0 when none is placed.
  uint32_t score(const absl::flat_hash_map<std::string, std::string>& labels);

 private:
  const std::vector<std::string> topology_;
  uint64_t placed_ = 0;
  std::vector<std::pair<TopologyPath, uint32_t>> paths_;  // of those placed, and how many are there
  absl::flat_hash_map<std::string, uint32_t> scores_;     // of paths seen, by their values one after the other
  std::string key_;                                       // kept, so that thousands of machines need no allocation
};

}  // namespace gleaner::placement
