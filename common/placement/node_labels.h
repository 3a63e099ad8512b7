// Functions that compute, from the labels of two machines' nodes, how near the machines are to each other. Pure.
//
// LabelLevels is a list of levels, widest first. Tools name the same level differently, also in one cluster: while a
// tool is upgraded, some nodes have its old labels, some its new ones, and some have both. So a level is a list of
// labels by precedence, and a machine's value of the level is that of the first label that its node has. A level counts
// once, whichever of its labels two nodes have.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gleaner::placement {

using LabelLevel = std::vector<std::string>;  // label keys, of which the first that a node has counts
using LabelLevels = std::vector<LabelLevel>;  // widest level first

// Returns the levels region, zone, those of clouds and topology tools for blocks and switches, rack, and domains of
// accelerators.
LabelLevels default_label_levels();

// The level of the groups that latencies tell (common/fabric), which is no label.
inline constexpr char kProbedLevel[] = "probes";

// Parses levels that are separated by commas, each a label key or several with | between them: "zone,rack|row".
// InvalidArgument: a level is empty, a label occurs twice, is kProbedLevel, or is no label key of Kubernetes.
absl::StatusOr<LabelLevels> parse_label_levels(absl::string_view text);

// Returns the levels of the flag --topology: default_label_levels() if it is empty. InvalidArgument names the flag.
absl::StatusOr<LabelLevels> label_levels_of_flag(absl::string_view text);

// A machine's values of the levels, in the same order; an empty value: the node has none of the level's labels.
using LabelPath = std::vector<std::string>;
LabelPath label_path(const absl::flat_hash_map<std::string, std::string>& labels, const LabelLevels& levels);

// Returns 0 to 1: the number of levels that both paths share before the first level that differs, divided by the number
// of levels that at least one path has. For example, {"r1", "z1", "b1"} and {"r1", "z2", "b1"} share one level of
// three. 0 if both paths are empty. Both paths have the same length.
double nearness(const LabelPath& one, const LabelPath& other);

// Scores many machines by their nearness to the workers of a job that are placed already. Compares each pair of
// different paths only once; scoring one more machine costs a lookup of its labels.
class Neighbourhood {
 public:
  Neighbourhood(const std::vector<const absl::flat_hash_map<std::string, std::string>*>& placed_labels,
                LabelLevels levels);
  // Returns the mean nearness of a machine to the placed workers, 0 to 100; 0 if no worker is placed.
  uint32_t score(const absl::flat_hash_map<std::string, std::string>& labels);

 private:
  const LabelLevels levels_;
  uint64_t placed_ = 0;
  // Different paths of placed workers, with the number of workers on each.
  std::vector<std::pair<LabelPath, uint32_t>> paths_;
  absl::flat_hash_map<std::string, uint32_t> scores_;  // by a path's values joined into one key
  std::string key_;  // kept between calls, so that scoring thousands of machines allocates no memory
};

}  // namespace gleaner::placement
