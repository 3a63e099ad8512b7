// AutoStrategies chooses the strategies of a job with --strategy auto: those of new tensors, and, while the job runs,
// other ones for its tensors if measured steps show that the models of the present ones were too good.
//
// In a plan of class RankOrder (plan::Bits) it chooses only strategies of that class, so no measurement changes a bit.
// In class Schedule it chooses among all.
//
// A change takes these steps:
// 1. on_measured() finds out that other strategies would be faster (common/strategy/correction.h).
// 2. A worker is asked for its counts of push_pulls (push_pull_counts.h).
// 3. make_change() makes the plan with the new strategies, from such a push_pull of each tensor on that no worker has
//    begun (plan::Tensor::schedule_from). A rank that has begun a later one refuses the plan. Then the wish stays, and
//    new counts are asked for.
//
// Pure; belongs to a Planner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/plan/plan.h"
#include "common/strategy/correction.h"
#include "coordinator/measure/step_times.h"
#include "coordinator/planning/modelling.h"
#include "coordinator/planning/push_pull_counts.h"
#include "coordinator/planning/strategy_change.h"

namespace gleaner::coordinator {

class AutoStrategies {
 public:
  // `modelling` must outlive this object.
  AutoStrategies(Modelling* modelling, const PushPullCountTimes& times) : modelling_(*modelling), counts_(times) {}

  // Sets the strategies of tensors that are going to be added to the plan. `models`: of the plan. Returns a line for
  // the log.
  std::string choose(plan::Plan& plan, std::vector<plan::Tensor>& tensors, const strategy::Models& models) const;

  // Takes the time of steps under the plan in force. Ignores it while the models for the plan are made.
  absl::Status on_measured(const plan::Plan& in_force, const StepTime& step, absl::Duration now);
  // Returns whether to ask a worker for its counts now, and takes that as done.
  bool ask_for_counts(const plan::Plan& in_force, absl::Duration now);
  // A worker's answer.
  void on_counts(uint32_t epoch, std::vector<uint64_t> counts, absl::Duration now);
  // Returns the plan of `epoch` with the wanted strategies, if there is a wish and the counts are known.
  std::optional<plan::Plan> make_change(const plan::Plan& in_force, uint32_t epoch, absl::Duration now);

  // A plan comes into force: the last one that was proposed, or that of another coordinator. Returns the change that it
  // makes.
  std::optional<StrategyChange> on_plan(const plan::Plan& plan, absl::Duration now);
  void on_withdrawn() { proposed_.reset(); }

  // Returns the candidates with their modelled and corrected times, for tensors of the sizes that the plan has,
  // also the candidates of the other class of bits. Empty while the models for the plan are made, and without
  // --strategy auto.
  std::vector<CandidateTimes> candidate_times(const plan::Plan& in_force) const;
  // Returns the time of a step in the other class of bits (other_bits.h). None: as for candidate_times().
  std::optional<OtherBits> other_bits(const plan::Plan& in_force) const;

 private:
  struct Wish {
    uint32_t epoch = 0;  // of the plan that it would change
    std::vector<strategy::Candidate> candidates;
    std::vector<size_t> strategies;  // by tensor, the index of a candidate
    StrategyChange change;           // as far as it is known
  };

  Modelling& modelling_;
  strategy::Correction correction_;
  PushPullCounts counts_;
  std::optional<Wish> wish_;
  std::optional<StrategyChange> proposed_;
};

}  // namespace gleaner::coordinator
