#include "common/strategy/step.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace gleaner::strategy {

std::vector<double> step_parts(std::span<const Candidate> candidates, std::span<const TensorGroup> groups,
                               std::span<const size_t> strategies) {
  std::vector<double> parts(candidates.size());
  double longest = 0;
  size_t slowest = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const TensorGroup& group = groups[i];
    if (!(group.bytes > 0)) continue;
    const Model& model = candidates[strategies[i]].model_of(group.types);
    const double partition_bytes = std::min(group.bytes, group.partition_bytes);
    const double stream = model.stream_seconds(partition_bytes);
    parts[strategies[i]] += stream * group.bytes * group.per_step;
    const double beyond_stream = model.seconds(partition_bytes, partition_bytes) - stream * partition_bytes;
    if (group.per_step == 0 || beyond_stream < longest) continue;
    longest = beyond_stream;
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
    std::vector<double> seconds = seconds_of(candidates, group.bytes, group.partition_bytes, group.types);
    for (size_t other = 0; other < seconds.size(); ++other) {
      const bool fits = candidates[other].model_of(group.types).fits(group.partition_bytes);
      if (!fits && other != group.strategy) seconds[other] = std::numeric_limits<double>::infinity();
    }
    if (seconds[group.strategy] < kNeededGain * seconds[fastest(seconds)]) continue;
    strategies[i] = best(seconds);
  }
  return strategies;
}

}  // namespace gleaner::strategy
