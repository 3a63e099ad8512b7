// Planning changes the plan of a job: it has Planner make the next plan, has PlanAgreement propose and commit it,
// brings the seats of summers up to date with it, and counts the changes (ChangeCounter).
//
// Planning sends Prepare and Commit, and Goodbye to summers that leave. Its caller decides whether a member is lost or
// the job fails, by the reason of the plan (core.h). A status that is not OK means that no plan can be made for the
// members; then no plan is proposed. Pure; belongs to a Core.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/plan/plan.h"
#include "coordinator/changes.h"
#include "coordinator/messages.h"
#include "coordinator/options.h"
#include "coordinator/plan_agreement.h"
#include "coordinator/planner.h"
#include "coordinator/roster.h"

namespace gleaner::coordinator {

class Planning {
 public:
  // `epoch`: the highest epoch that an earlier core of this job used. The pointers must outlive this object.
  Planning(const Options* options, Roster* roster, uint32_t epoch)
      : options_(*options), roster_(*roster), agreement_(roster, epoch), planner_(options, roster) {}

  const plan::Plan& in_force() const { return *agreement_.in_force(); }  // epoch 0: no plan yet
  bool has_plan() const { return in_force().epoch > 0; }
  bool is_proposed() const { return agreement_.proposed() != nullptr; }
  const PlanAgreement& agreement() const { return agreement_; }
  const Changes& changes() const { return counter_.changes(); }

  absl::Status propose_first(absl::Duration now, Actions& actions);
  // Proposes the plan that follows the plan in force, if there is a reason for one and no plan is proposed. `ending`:
  // a rank has left cleanly.
  absl::Status propose_next(bool ending, absl::Duration now, Actions& actions);
  // Commits the proposed plan if no acknowledgement is missing. Returns whether it was committed.
  bool commit_if_acknowledged(absl::Duration now, Actions& actions);
  // Returns whether the proposed plan is overdue: after change_timeout for an optional plan, after the deadline for
  // others. PlanAgreement::unacknowledged() has the members that have not acknowledged the plan. It is empty if a rank
  // has left with an error meanwhile.
  bool is_overdue(absl::Duration now) const;
  // Withdraws the proposed plan, which is optional, and begins or doubles the backoff of optional plans (planner.h).
  void back_off(absl::string_view why, absl::Duration now, Actions& actions);
  // Withdraws the proposed plan, if there is one.
  void withdraw();
  // Withdraws the proposed plan unless it is needed.
  void withdraw_unless_needed();

  // See PlanAgreement and Planner.
  void on_known_epoch(uint32_t epoch) { agreement_.on_known_epoch(epoch); }
  void add_tensors(std::vector<plan::Tensor> tensors) { planner_.add_tensors(std::move(tensors)); }
  void adopt(std::shared_ptr<const plan::Plan> plan) { agreement_.adopt(std::move(plan)); }
  // Sends a member the plans that it missed.
  void catch_up(uint32_t seat, Actions& actions);

  // Has the next plan include a summer that has joined.
  void on_summer_joined(uint32_t seat, absl::Duration now);
  // Has the next plan leave out a summer that wants to leave.
  void on_summer_leaves(uint32_t seat, absl::Duration now);
  // Vacates the seat of a lost summer.
  void on_summer_lost(uint32_t seat, absl::Duration now);
  // Vacates the seat of a summer of the plan in force that did not return after a change of coordinators.
  void on_summer_stayed_away(uint32_t seat, absl::Duration now);
  // Sends Goodbye to a summer and vacates its seat.
  void release_summer(uint32_t seat, absl::Duration now, Actions& actions);

 private:
  bool vacate(uint32_t seat, absl::Duration now);
  void propose(plan::Plan plan, PlanReason reason, absl::Duration now, Actions& actions);
  void update_summers(const plan::Plan& before, absl::Duration now, Actions& actions);

  const Options& options_;
  Roster& roster_;
  PlanAgreement agreement_;
  Planner planner_;
  ChangeCounter counter_;
};

}  // namespace gleaner::coordinator
