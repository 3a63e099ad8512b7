#include "common/strategy/correction.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "common/base/backoff.h"

namespace gleaner::strategy {
namespace {

constexpr uint32_t kNeededWishes = 2;
constexpr int kNeededDeviations = 3;
constexpr double kLeastWeight = 0.1;  // of a measurement
// A strategy with a smaller part of the step is not measured by it.
constexpr double kLeastPart = 0.1;

}  // namespace

void Correction::on_plan(bool changes_strategies, absl::Duration now) {
  measurements_ = wishes_ = 0;
  deviations_ = 0;
  if (!changes_strategies) return;
  if (now - last_change_ > 2 * kLongestPause) pause_ = absl::ZeroDuration();
  pause_ = next_pause(pause_, kFirstPause, kLongestPause);
  next_change_ = now + pause_;
  last_change_ = now;
}

std::optional<Correction::Change> Correction::on_measured(std::span<const Candidate> candidates,
                                                          std::span<const TensorGroup> groups, double seconds,
                                                          absl::Duration now) {
  if (groups.empty() || !(seconds > 0)) return std::nullopt;
  learn(candidates, groups, seconds);
  const std::vector<Candidate> times = corrected(candidates);
  Change change{best_strategies(times, groups), step_seconds(times, groups, in_force(groups))};
  change.seconds_after = step_seconds(times, groups, change.strategies);
  const bool gains = change.seconds_after < (1 - kThreshold) * change.seconds_before;
  wishes_ = gains ? wishes_ + 1 : 0;
  if (wishes_ < kNeededWishes || now < next_change_) return std::nullopt;
  return change;
}

void Correction::learn(std::span<const Candidate> candidates, std::span<const TensorGroup> groups, double seconds) {
  const std::vector<double> modelled = step_parts(candidates, groups, in_force(groups));
  ++measurements_;
  check_network(candidates, modelled, seconds);
  std::vector<double> parts = step_parts(corrected(candidates), groups, in_force(groups));
  const double expected = std::accumulate(parts.begin(), parts.end(), 0.0);
  if (!(expected > 0)) return;
  double squares = 0;
  for (double& part : parts) {
    part /= expected;
    squares += part * part;
  }
  const double weight = std::max(1.0 / measurements_, kLeastWeight);
  const double most = std::log(kMostFactor);
  double mean = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (parts[i] == 0) continue;
    const std::string name = name_of(candidates[i]);
    double factor = std::log(this->factor(candidates[i]));
    factor = std::clamp(factor + weight * std::log(seconds / expected) * parts[i] / squares, -most, most);
    mean += parts[i] * factor;
    if (parts[i] >= kLeastPart || factors_.contains(name)) factors_[name] = factor;
  }
  common_ = mean / 2;
}

// Follows measured / modelled time under the plan in force. Once it has left its level for good, forgets the factors of
// strategies that are not in force, and begins anew.
void Correction::check_network(std::span<const Candidate> candidates, std::span<const double> parts, double seconds) {
  const double modelled = std::accumulate(parts.begin(), parts.end(), 0.0);
  if (!(modelled > 0)) return;
  const double ratio = std::log(seconds / modelled);
  const double off = measurements_ > 1 ? ratio - level_ : 0;
  if (std::abs(off) <= std::log1p(kThreshold)) {
    deviations_ = 0;
    level_ += (ratio - level_) * std::max(1.0 / measurements_, kLeastWeight);
    return;
  }
  const int direction = off > 0 ? 1 : -1;
  deviations_ = deviations_ * direction > 0 ? deviations_ + direction : direction;
  if (std::abs(deviations_) < kNeededDeviations) return;
  std::map<std::string, double> kept;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto found = factors_.find(name_of(candidates[i]));
    if (parts[i] > 0 && found != factors_.end()) kept.insert(*found);
  }
  factors_ = std::move(kept);
  level_ = ratio;
  deviations_ = 0;
  measurements_ = 1;
}

double Correction::factor(const Candidate& strategy) const {
  const auto found = factors_.find(name_of(strategy));
  return std::exp(found == factors_.end() ? common_ : found->second);
}

bool Correction::is_measured(const Candidate& strategy) const { return factors_.contains(name_of(strategy)); }

std::vector<Candidate> Correction::corrected(std::span<const Candidate> candidates) const {
  std::vector<Candidate> times(candidates.begin(), candidates.end());
  for (Candidate& each : times) {
    const double by = factor(each);
    each.model.multiply(by);
    each.narrow_model.multiply(by);
    each.narrow_model_with_wide_pushes.multiply(by);
  }
  return times;
}

}  // namespace gleaner::strategy
