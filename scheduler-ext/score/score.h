// Computes the scores of kube-scheduler's nodes for a pod of Gleaner, 0 to 10. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/placement/fleet.h"
#include "common/placement/node_labels.h"
#include "scheduler-ext/state/state.h"

namespace gleaner::extender {

inline constexpr int kMaxScore = 10;  // Kubernetes' MaxExtenderPriority

struct Scores {
  std::vector<int> scores;     // for each node of the snapshot
  std::optional<size_t> best;  // for a summer: index of the one node with kMaxScore; absent: no node is suitable
  double bits_per_second = 0;  // bandwidth that the summer could use on the best node
};

// Returns the scores. For a summer, only the best node (by score, then bandwidth, then name) gets 10, so that
// kube-scheduler's choice is known. Other nodes get 0 to 9 in proportion to their score. For a worker, the score is the
// nearness to the job's other workers. All scores are 0 while no NodeProfile exists (summers) or no worker is placed
// (workers).
Scores score(const placement::Pod& pod, const Snapshot& snapshot, const placement::LabelLevels& levels);

}  // namespace gleaner::extender
