// How good each of the scheduler's nodes is for a pod of ours, 0 ... 10. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "operator/placement/fleet.h"
#include "scheduler-ext/state/state.h"

namespace gleaner::extender {

inline constexpr int kMaxScore = 10;  // Kubernetes' MaxExtenderPriority

struct Scores {
  std::vector<int> scores;     // per node asked for
  std::optional<size_t> best;  // of a summer: the one node with kMaxScore; none: no node will do
  double bits_per_second = 0;  // what the summer could use there
};

// Summers: the best by score, then bandwidth, then name has 10, alone, so that the scheduler's choice is known; others
// have 0
// ... 9, in proportion to their score. Workers: nearness to the job's other workers. All 0 when nothing is known.
Scores score(const placement::Pod& pod, const Picture& picture, const std::vector<std::string>& topology);

}  // namespace gleaner::extender
