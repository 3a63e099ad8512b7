// Planner decides what the next plan of a job is, and why and when it is proposed.
//
// The reasons for a plan, by precedence:
// 1. A lost summer is in the plan in force: a *recovery* plan moves its partitions, and no others, to other owners.
//    This plan also adds the tensors that wait for a plan.
// 2. Tensors wait for a plan: a *needed* plan adds them. The first plan is a needed plan, too; it has no tensors.
// 3. The members, the bandwidths or the switches of summers have changed, or a recovery plan has left the shares
//    uneven: an *optional* plan reassigns all partitions. If none is the case, but other strategies would be faster
//    (auto_strategies.h), or other masters of two-level (master_tuning.h), an optional plan changes them and reassigns
//    all partitions. After an optional plan was withdrawn, the next one waits (backoff): 5 s after the first
//    withdrawal, twice as long after each further one, 5 minutes at most. A committed optional plan resets the backoff.
//    A summer that joins or leaves ends the backoff.
//
// Planner only makes plans; PlanAgreement proposes them to the members. Pure; belongs to Planning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/plan/partitioner.h"
#include "common/plan/plan.h"
#include "coordinator/planning/auto_strategies.h"
#include "coordinator/planning/master_tuning.h"
#include "coordinator/planning/modelling.h"
#include "coordinator/planning/plan_agreement.h"
#include "coordinator/roster/options.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

class Planner {
 public:
  struct Proposal {
    plan::Plan plan;
    PlanReason reason = PlanReason::kNeeded;
    std::string strategies;  // a line for the log, if strategies were chosen
  };

  // The pointers must outlive this object.
  Planner(const Options* options, const Roster* roster)
      : options_(*options),
        roster_(*roster),
        modelling_(options->reduction, roster),
        strategies_(&modelling_, options->reduction.count_times),
        masters_(*options) {}

  // Returns the plan with which the job begins.
  absl::StatusOr<plan::Plan> make_first(uint32_t epoch) const;
  // Returns the plan to propose after `in_force`, if there is a reason for one. `ending`: a rank has left cleanly, so
  // the only possible reason is new tensors. New tensors wait for the models of the plan; a recovery plan does not.
  absl::StatusOr<std::optional<Proposal>> make_next(const plan::Plan& in_force, uint32_t epoch, bool ending,
                                                    absl::Duration now);
  // See Modelling::set_summer_switch(). If the switch of a summer that takes part changes, the next optional plan
  // reassigns all partitions.
  absl::Status set_summer_switch(uint32_t summer, uint32_t at);
  Modelling& modelling() { return modelling_; }
  const Modelling& modelling() const { return modelling_; }
  // The strategies of a job with --strategy auto.
  AutoStrategies& strategies() { return strategies_; }
  const AutoStrategies& strategies() const { return strategies_; }
  bool chooses_strategies() const;
  // The masters of a job with the strategy two-level.
  MasterTuning& masters() { return masters_; }
  const MasterTuning& masters() const { return masters_; }
  // Returns whether an optional plan could be proposed now: no backoff goes on, and no tensor waits for a plan.
  bool may_change(absl::Duration now) const { return tensors_.empty() && now >= next_optional_; }
  // Adds tensors, which all ranks have declared alike, to the next plan.
  void add_tensors(std::vector<plan::Tensor> tensors);
  // Records that the plan of the last make_next() was committed, or withdrawn.
  void on_committed(PlanReason reason);
  void on_withdrawn();
  // Begins or doubles the backoff of optional plans, because one was withdrawn. Returns the backoff.
  absl::Duration back_off(absl::Duration now);
  // Ends the backoff of optional plans.
  void end_back_off(absl::Duration now) { next_optional_ = now; }

 private:
  std::optional<double> known_bandwidth_of(uint32_t member) const;
  double assumed_bandwidth() const;
  std::vector<plan::Member> members_left(const plan::Plan& in_force) const;
  std::vector<plan::Member> members_wanted(const plan::Plan& in_force, uint32_t epoch) const;
  // Returns the plan in force with these members, and with owners chosen by the network of the job.
  plan::Plan reassign(const plan::Plan& in_force, std::vector<plan::Member> members, uint32_t epoch,
                      plan::Reassign which) const;
  // Returns the shares by the network of the job when these tensors are added to the plan.
  std::vector<double> shares_with(const plan::Plan& plan, const std::vector<plan::Tensor>& added) const;

  const Options& options_;
  const Roster& roster_;
  std::vector<plan::Tensor> tensors_;  // declared alike by every rank, but in no committed plan yet
  size_t tensors_in_proposal_ = 0;     // the proposed plan has this many of `tensors_`, from the front
  // The shares of the plan in force are not those of its members: a recovery plan has left them so, or the switch of a
  // summer has changed. False while an optional plan is proposed for that reason.
  bool is_uneven_ = false;
  bool was_uneven_ = false;       // before the proposed plan
  absl::Duration next_optional_;  // earliest time of the next optional plan
  absl::Duration pause_;          // the last backoff
  Modelling modelling_;
  AutoStrategies strategies_;
  MasterTuning masters_;
};

}  // namespace gleaner::coordinator
