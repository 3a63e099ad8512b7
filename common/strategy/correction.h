// Correction corrects the modelled times of strategies by the times of steps that a job measures, and says when other
// strategies would be faster than those in force. Pure.
//
// Correction keeps a *factor* for each strategy: the measured time divided by the modelled time (candidates.h), between
// 1/4 and 4, and 1 at first. A step is a mix of strategies, so one measurement does not determine their factors. It
// changes the factors of the strategies in force by as little as explains the measured time: in logarithms, in
// proportion to their parts of the step (Kaczmarz's method). The first measurement under a plan counts in full, later
// ones less.
//
// A strategy that was never measured has the square root of the factor of those in force, since the model misses some
// of the time for all strategies alike (CPUs, skew between workers).
//
// A change is proposed if two measurements in a row, under one plan, say that a step would take at least 20 % less time
// (PLink §4.2.3 has the same threshold). The new strategies then get factors of their own. So a change that does not
// help is reverted, and not tried again. The factors of strategies that are not in force are forgotten when three
// measurements in a row, under one plan, differ by more than 20 % from the earlier ones: the network has changed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/strategy/candidates.h"
#include "common/strategy/step.h"

namespace gleaner::strategy {

class Correction {
 public:
  static constexpr double kMostFactor = 4;
  static constexpr double kThreshold = 0.2;
  static constexpr absl::Duration kFirstPause = absl::Seconds(5);
  static constexpr absl::Duration kLongestPause = absl::Minutes(5);

  // Strategies that are faster than those in force. The times are corrected.
  struct Change {
    std::vector<size_t> strategies;  // by group
    double seconds_before = 0;       // of a step
    double seconds_after = 0;
  };

  // A plan comes into force. `changes_strategies`: it carries out a Change. After a change, the next one waits for 5 s,
  // and twice as long after each further one, up to 5 minutes; 10 minutes without a change end the doubling.
  void on_plan(bool changes_strategies, absl::Duration now);
  // Takes the time of a step that was measured under the plan in force, and returns a change that is due.
  std::optional<Change> on_measured(std::span<const Candidate> candidates, std::span<const TensorGroup> groups,
                                    double seconds, absl::Duration now);

  double factor(const Candidate& strategy) const;
  // Returns whether a measurement has set the factor of this strategy.
  bool is_measured(const Candidate& strategy) const;
  // Returns the candidates with their times multiplied by their factors.
  std::vector<Candidate> corrected(std::span<const Candidate> candidates) const;

 private:
  void learn(std::span<const Candidate> candidates, std::span<const TensorGroup> groups, double seconds);
  void check_network(std::span<const Candidate> candidates, std::span<const double> parts, double seconds);

  std::map<std::string, double> factors_;  // logarithms, by name_of() the candidate, of those that were measured
  double common_ = 0;                      // logarithm of the factor of strategies that were not measured
  // Under the plan in force:
  uint32_t measurements_ = 0;
  uint32_t wishes_ = 0;  // the last so many measurements asked for a change
  double level_ = 0;     // logarithm of measured / modelled time, smoothed
  int deviations_ = 0;   // the last so many measurements were above the level; negative: below it
  // The back-off of changes:
  absl::Duration pause_;  // the last one
  absl::Duration next_change_ = -absl::InfiniteDuration();
  absl::Duration last_change_ = -absl::InfiniteDuration();
};

}  // namespace gleaner::strategy
