// Planning changes the plan of a job: it has Planner make the next plan, has PlanAgreement propose and commit it,
// brings the seats of summers up to date with it, and counts the changes (ChangeCounter).
//
// A member that does not acknowledge a needed or recovery plan (planner.h) within the deadline is lost. If a rank
// refuses such a plan, the job fails. A summer that refuses any plan is lost. If a rank refuses an optional plan, or a
// member does not acknowledge it within change_timeout, the plan is withdrawn, and the plan in force stays.
//
// Planning sends Prepare, Commit and Withdraw, CountPushPulls before a change of strategies, Rejected to lost summers,
// and Goodbye to summers that leave. A status that is not
// OK means that no plan can be made for the members; then no plan is proposed. Pure; belongs to a Core.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/plan/plan.h"
#include "coordinator/measure/step_times.h"
#include "coordinator/planning/changes.h"
#include "coordinator/planning/plan_agreement.h"
#include "coordinator/planning/planner.h"
#include "coordinator/planning/strategy_change.h"
#include "coordinator/roster/findings.h"
#include "coordinator/roster/messages.h"
#include "coordinator/roster/options.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

class Planning {
 public:
  static constexpr size_t kChangesKept = 256;  // in strategy_changes()
  // After the first commit, the time in which ranks connect and measure; much shorter than a program takes to declare
  // its tensors.
  static constexpr absl::Duration kMeasuring = absl::Milliseconds(500);

  // `epoch`: the highest epoch that an earlier core of this job used. The pointers must outlive this object.
  Planning(const Options* options, Roster* roster, uint32_t epoch)
      : options_(*options), roster_(*roster), agreement_(roster, epoch), planner_(options, roster) {}

  const plan::Plan& in_force() const { return *agreement_.in_force(); }  // epoch 0: no plan yet
  bool has_plan() const { return in_force().epoch > 0; }
  // Returns whether the plan in force includes a lost summer.
  bool has_lost_summer() const { return roster_.is_any_summer_lost(in_force()); }
  bool is_proposed() const { return agreement_.proposed() != nullptr; }
  const PlanAgreement& agreement() const { return agreement_; }
  const Changes& changes() const { return counter_.changes(); }

  absl::Status propose_first(absl::Duration now, Actions& actions);
  // Proposes the plan that follows the plan in force, if there is a reason for one and no plan is proposed. `ending`:
  // a rank has left cleanly.
  absl::Status propose_next(bool ending, absl::Duration now, Actions& actions);
  // Commits the proposed plan if no acknowledgement is missing. Returns whether it was committed.
  bool commit_if_acknowledged(absl::Duration now, Actions& actions);
  // The member in this seat has acknowledged the plan of `epoch`. Returns whether that is new, so that the proposed
  // plan may be ready to commit. Internal: no plan of this epoch was ever proposed.
  absl::StatusOr<bool> on_acknowledged(uint32_t seat, uint32_t epoch);
  // The member in this seat can't follow the plan of `epoch`. Ignores a refusal of a withdrawn plan, except during
  // re-attachment (`reattaching`), when the plan may be one of another coordinator.
  Finding on_refused(uint32_t seat, uint32_t epoch, const absl::Status& why, bool reattaching, absl::Duration now,
                     Actions& actions);
  // Withdraws an optional plan that is overdue. Returns the loss of a member that has not acknowledged another plan.
  Finding check_overdue(absl::Duration now, Actions& actions);
  // Withdraws the proposed plan unless it is needed.
  void withdraw_unless_needed(Actions& actions);

  // See PlanAgreement and Planner.
  void on_known_epoch(uint32_t epoch) { agreement_.on_known_epoch(epoch); }
  void set_round_trip(double seconds) { planner_.modelling().set_round_trip(seconds); }
  std::vector<uint32_t> summers_at(const plan::Plan& plan) const { return planner_.modelling().summers_at(plan); }
  void set_message_overhead(double seconds) { planner_.modelling().set_message_overhead(seconds); }
  // Returns whether the first models have not been asked for, because the times of messages are not measured. They are
  // asked for by ask_for_first_models(), by propose_next() after kMeasuring, or when tensors are declared.
  bool awaits_measurements() const { return has_plan() && planner_.modelling().is_unasked(); }
  void ask_for_first_models(Actions& actions);
  // The answer to Actions::model. propose_next() may have waited for it.
  void on_modelled(const ModelRequest& request, absl::StatusOr<strategy::Models> models) {
    planner_.modelling().on_modelled(request, std::move(models));
  }
  void add_tensors(std::vector<plan::Tensor> tensors) { planner_.add_tensors(std::move(tensors)); }
  absl::Status set_summer_switch(uint32_t summer, uint32_t at) { return planner_.set_summer_switch(summer, at); }
  // A job with --strategy auto or two-level: takes the time of steps under the plan in force, and the answer to
  // CountPushPulls. Both may lead to an optional plan, which changes strategies, or the masters of two-level.
  void on_step_time(const StepTime& step, absl::Duration now, Actions& actions);
  void on_counts(uint32_t epoch, std::vector<uint64_t> counts, absl::Duration now) {
    planner_.masters().on_counts(epoch, counts, now);
    planner_.strategies().on_counts(epoch, std::move(counts), now);
  }
  // The latest kChangesKept changes of strategies.
  const std::vector<StrategyChange>& strategy_changes() const { return strategy_changes_; }
  // Returns the candidates for the tensors of the plan in force; empty without --strategy auto.
  std::vector<CandidateTimes> candidate_times() const { return planner_.strategies().candidate_times(in_force()); }
  // Returns the schedule in force if its masters were tuned while the job runs.
  std::optional<collective::Spec> tuned_schedule() const { return planner_.masters().tuned(in_force()); }
  std::optional<OtherBits> other_bits() const { return planner_.strategies().other_bits(in_force()); }
  // Puts the plan in force that all members returned with after a change of coordinators, and sends it to those that
  // missed it.
  void adopt(std::shared_ptr<const plan::Plan> plan, absl::Duration now, Actions& actions);
  // Sends a member the plans that it missed, and Withdraw if it has prepared a plan that was withdrawn.
  void catch_up(uint32_t seat, Actions& actions);

  // Has the next plan include a summer that has joined.
  void on_summer_joined(uint32_t seat, absl::Duration now);
  // Has the next plan leave out a summer that wants to leave. Releases the summer at once if the plan in force does not
  // include it. `reattaching`: the plan in force is not known yet.
  void on_summer_leaves(uint32_t seat, bool reattaching, absl::Duration now, Actions& actions);
  // Rejects a lost summer and vacates its seat. `has_begun`: the job has a plan, known or not.
  void on_summer_lost(uint32_t seat, absl::string_view why, bool has_begun, absl::Duration now, Actions& actions);
  // Vacates the seat of a summer of the plan in force that did not return after a change of coordinators.
  void on_summer_stayed_away(uint32_t seat, absl::Duration now, Actions& actions);
  // Sends Goodbye to a summer and vacates its seat.
  void release_summer(uint32_t seat, absl::Duration now, Actions& actions);

 private:
  bool vacate(uint32_t seat, absl::Duration now, Actions& actions);
  bool is_overdue(absl::Duration now) const;
  void back_off(absl::string_view why, absl::Duration now, Actions& actions);
  void withdraw(Actions& actions);
  void ask_for_counts(absl::Duration now, Actions& actions);
  void note_strategies(absl::Duration now, Actions& actions);
  void ask_for_models(Actions& actions);
  void propose(plan::Plan plan, PlanReason reason, absl::Duration now, Actions& actions);
  void update_summers(const plan::Plan& before, absl::Duration now, Actions& actions);

  const Options& options_;
  Roster& roster_;
  PlanAgreement agreement_;
  Planner planner_;
  ChangeCounter counter_;
  std::vector<StrategyChange> strategy_changes_;
  std::optional<absl::Duration> began_;  // when the first plan was committed, or adopted
};

}  // namespace gleaner::coordinator
