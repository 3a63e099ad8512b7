// The modelled time of a whole step, in which a job sums many tensors by several strategies. Pure.
//
// The tensors of a step follow each other through the links, as the partitions of a tensor do (candidates.h). So the
// time of a step has two parts: the time in which the busiest channels and processors move all tensors, and the longest
// time by which one partition takes longer than that, alone. With tensors of m bytes in partitions of p bytes, and a
// strategy's times `latency` and, per byte, `alone` and `stream` (candidates.h):
//
//   t = Σ over tensors of stream · m  +  max over tensors of (latency + (alone - stream) · min(m, p))
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "common/strategy/candidates.h"

namespace gleaner::strategy {

// Tensors of one size and of the same types that a plan sums by one strategy.
struct TensorGroup {
  double bytes = 0;  // of one tensor
  double partition_bytes = 0;
  double per_step = 0;    // push_pulls of all these tensors in a step
  size_t strategy = 0;    // index of the candidate in force
  bool is_fixed = false;  // the tensors accumulate, so summers sum them in any case
  plan::Encoding types = {};
};

// Returns, by candidate, its part of a step's time: the strategy of the slowest partition has all of the maximum.
// `strategies`: by group, the index of a candidate.
std::vector<double> step_parts(std::span<const Candidate> candidates, std::span<const TensorGroup> groups,
                               std::span<const size_t> strategies);

// Returns the sum of step_parts().
double step_seconds(std::span<const Candidate> candidates, std::span<const TensorGroup> groups,
                    std::span<const size_t> strategies);

// Returns the strategies in force, by group.
std::vector<size_t> in_force(std::span<const TensorGroup> groups);

// Returns the strategies, by group, that should be in force: best() where the strategy in force is slower than the
// fastest one by kNeededGain, and else the strategy in force. Those of fixed groups stay. A changed strategy keeps the
// partitions of a tensor, so a strategy whose messages would be too large for them is no choice (Model::fits()).
std::vector<size_t> best_strategies(std::span<const Candidate> candidates, std::span<const TensorGroup> groups);

}  // namespace gleaner::strategy
