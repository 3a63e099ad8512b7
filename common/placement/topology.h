// Functions that compute, from the labels of two machines' nodes, how near the machines are to each other. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace gleaner::placement {

// Returns label names, widest first: region, zone, then the labels of clouds and topology tools for blocks and racks.
std::vector<std::string> default_topology();

// A machine's values of the topology labels, in the same order; an empty value: the node lacks the label.
using TopologyPath = std::vector<std::string>;
TopologyPath topology_path(const absl::flat_hash_map<std::string, std::string>& labels,
                           const std::vector<std::string>& topology);

// Returns 0 to 1: the number of levels that both paths share before the first level that differs, divided by the number
// of levels that at least one path has. For example, {"r1", "z1", "b1"} and {"r1", "z2", "b1"} share one level of
// three. 0 if both paths are empty. Both paths have the same length.
double nearness(const TopologyPath& one, const TopologyPath& other);

// Scores many machines by their nearness to the workers of a job that are placed already. Compares each pair of
// different paths only once; scoring one more machine costs a lookup of its labels.
class Neighbourhood {
 public:
  Neighbourhood(const std::vector<const absl::flat_hash_map<std::string, std::string>*>& placed_labels,
                std::vector<std::string> topology);
  // Returns the mean nearness of a machine to the placed workers, 0 to 100; 0 if no worker is placed.
  uint32_t score(const absl::flat_hash_map<std::string, std::string>& labels);

 private:
  const std::vector<std::string> topology_;
  uint64_t placed_ = 0;
  // Different paths of placed workers, with the number of workers on each.
  std::vector<std::pair<TopologyPath, uint32_t>> paths_;
  absl::flat_hash_map<std::string, uint32_t> scores_;  // by a path's values joined into one key
  std::string key_;  // kept between calls, so that scoring thousands of machines allocates no memory
};

}  // namespace gleaner::placement
