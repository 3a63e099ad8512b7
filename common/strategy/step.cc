#include "common/strategy/step.h"

#include <algorithm>
#include <numeric>

namespace gleaner::strategy {

std::vector<double> step_parts(std::span<const Candidate> candidates, std::span<const TensorGroup> groups,
                               std::span<const size_t> strategies) {
  std::vector<double> parts(candidates.size());
  double longest = 0;
  size_t slowest = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const TensorGroup& group = groups[i];
    const Model& model = candidates[strategies[i]].model;
    parts[strategies[i]] += model.stream_seconds_per_byte * group.bytes * group.per_step;
    const double first = model.seconds(std::min(group.bytes, group.partition_bytes), group.partition_bytes);
    if (group.per_step == 0 || first < longest) continue;
    longest = first;
    slowest = strategies[i];
  }
  parts[slowest] += longest;
  return parts;
}

double step_seconds(std::span<const Candidate> candidates, std::span<const TensorGroup> groups,
                    std::span<const size_t> strategies) {
  const std::vector<double> parts = step_parts(candidates, groups, strategies);
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

std::vector<size_t> in_force(std::span<const TensorGroup> groups) {
  std::vector<size_t> strategies;
  for (const TensorGroup& group : groups) strategies.push_back(group.strategy);
  return strategies;
}

std::vector<size_t> best_strategies(std::span<const Candidate> candidates, std::span<const TensorGroup> groups) {
  std::vector<size_t> strategies = in_force(groups);
  for (size_t i = 0; i < groups.size(); ++i) {
    const TensorGroup& group = groups[i];
    if (group.is_fixed) continue;
    const auto seconds = [&](size_t candidate) {
      return candidates[candidate].model.seconds(group.bytes, group.partition_bytes);
    };
    const size_t least = fastest(candidates, group.bytes, group.partition_bytes);
    if (seconds(group.strategy) < kNeededGain * seconds(least)) continue;
    strategies[i] = best(candidates, group.bytes, group.partition_bytes);
  }
  return strategies;
}

}  // namespace gleaner::strategy
