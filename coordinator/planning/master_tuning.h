// MasterTuning moves the masters of a job with the strategy two-level while the job runs, when links become slower or
// faster. Source: Autotune of PLink, Luo §4.2.3; strategy::Autotune decides the moves.
//
// For each measurement (step_times.h):
// 1. SteadyLinks takes the bandwidths that the workers report, and tells whether a link has changed.
// 2. If a link has, or the masters have, Quicktune chooses masters by the steady bandwidths, and Autotune moves
//    masterships until the ranks are balanced; the better result counts. One plan makes all these moves, since each
//    plan costs an agreement of all members, and a plan has room for 64 schedules; a full one changes among these.
//    PLink makes one move for each measurement, because its bandwidths depend on the masters; here a later measurement
//    corrects them.
//    A link that is faster again can't show its rate while its worker has few masterships: it then waits for others. So
//    a link whose ratio rises counts as fast as the median one, until a plan by that does not help.
// 3. If the slowest rank then carries its load in less time by kLeastGain, a plan gives all tensors a schedule with
//    these masters, from such a push_pull on that no worker has begun (push_pull_counts.h).
// 4. The first measurement under that plan judges it. If steps are not faster by kHelps, no other change is made for
//    5 s, and for twice as long after each further one, up to 5 minutes; a change that helps halves
//    this pause. If they are slower by kHarms, and no link
//    has changed meanwhile, the masters go back, and stay until a link changes.
// So links that stay as they are lead to no plan, and measurements that mislead lead to fewer and fewer.
//
// The weights are β = 0 and γ = 1. With β = 1 Finetune gives masterships back to a rank with a slow link, since its
// load is the least, and steps wait for it.
//
// No tuning: fewer than three workers, since each of two carries the same in any case; more than 64, since Quicktune
// then takes too long for an event; a network with --rank-map identity, which fixes masters, too; and a worker that has
// never known the rate of its link, as without TCP. A schedule without numbers of masters counts as one with those of
// even_masters().
//
// Pure; belongs to a Planner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/plan/plan.h"
#include "common/strategy/autotune.h"
#include "common/strategy/rank_maps.h"
#include "common/strategy/steady_links.h"
#include "coordinator/measure/step_times.h"
#include "coordinator/planning/push_pull_counts.h"
#include "coordinator/planning/strategy_change.h"
#include "coordinator/roster/options.h"

namespace gleaner::coordinator {

class MasterTuning {
 public:
  static constexpr double kLeastGain = 0.01;
  static constexpr double kHelps = 0.05;
  static constexpr double kHarms = 0.1;

  explicit MasterTuning(const Options& options);

  // Returns the schedule of new tensors: that of the present tensors, since all have the same one.
  static uint32_t schedule_of_new(const plan::Plan& plan);

  // Takes a measurement under the plan in force.
  absl::Status on_measured(const plan::Plan& in_force, const StepTime& step, absl::Duration now);
  // As in AutoStrategies, but make_change() leaves it to the caller to reassign the partitions of the plan.
  bool ask_for_counts(const plan::Plan& in_force, absl::Duration now);
  void on_counts(uint32_t epoch, std::vector<uint64_t> counts, absl::Duration now) {
    counts_.on_counts(epoch, std::move(counts), now);
  }
  std::optional<plan::Plan> make_change(const plan::Plan& in_force, uint32_t epoch, absl::Duration now);
  std::optional<StrategyChange> on_plan(const plan::Plan& plan);
  void on_withdrawn() { proposed_.reset(); }
  // Returns the schedule in force, if its masters were tuned.
  std::optional<collective::Spec> tuned(const plan::Plan& in_force) const;

 private:
  struct Wish {
    uint32_t epoch = 0;  // of the plan that it would change
    collective::Spec schedule;
    uint32_t schedule_before = 0;
    double speed = 0;       // that was measured last; 0: the change needs no judgement
    StrategyChange change;  // as far as it is known
  };
  // A change in force that is not judged yet.
  struct Trial {
    uint32_t epoch = 0;
    double speed_before = 0;
    uint32_t schedule_before = 0;
  };

  absl::Status begin(const plan::Plan& in_force);
  // Finds the ranks whose ratios have risen from `before`, but stay below 1.
  void hope(const std::vector<double>& before);
  void judge(const plan::Plan& in_force, double speed, bool has_link_changed, absl::Duration now);
  void tune(const plan::Plan& in_force, const strategy::Autotune::Measured& measured);
  void wish(const plan::Plan& in_force, collective::Spec schedule, double speed, std::string why);
  std::string why(const collective::Spec& schedule) const;

  const bool tunes_;
  PushPullCounts counts_;
  collective::Groups groups_;
  std::optional<strategy::Autotune> autotune_;  // from the first measurement on
  strategy::SteadyLinks links_;
  std::vector<bool> hopes_;  // by rank: its link counts as fast as the median one; empty: none does
  std::optional<Wish> wish_;
  std::optional<Wish> proposed_;
  std::optional<Trial> trial_;
  bool is_due_ = false;   // a link or the masters have changed since Autotune was asked
  absl::Duration pause_;  // after the last change that did not help; each that helps halves it
  absl::Duration next_;   // earliest time of the next change
};

}  // namespace gleaner::coordinator
