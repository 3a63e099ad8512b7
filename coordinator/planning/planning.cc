#include "coordinator/planning/planning.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/base/text_table.h"

namespace gleaner::coordinator {

absl::Status Planning::propose_first(absl::Duration now, Actions& actions) {
  GLN_ASSIGN_OR_RETURN(plan::Plan plan, planner_.make_first(agreement_.highest_epoch() + 1));
  propose(std::move(plan), PlanReason::kNeeded, now, actions);
  return absl::OkStatus();
}

absl::Status Planning::propose_next(bool ending, absl::Duration now, Actions& actions) {
  if (is_proposed() || !has_plan()) return absl::OkStatus();
  if (GLN_INJECT("coordinator: the next plan waits for a tick")) return absl::OkStatus();
  if (!ending) ask_for_counts(now, actions);
  if (awaits_measurements() && now - began_.value_or(now) >= kMeasuring) ask_for_first_models(actions);
  auto made = planner_.make_next(in_force(), agreement_.highest_epoch() + 1, ending, now);
  ask_for_models(actions);
  GLN_ASSIGN_OR_RETURN(std::optional<Planner::Proposal> next, std::move(made));
  if (!next.has_value()) return absl::OkStatus();
  if (!next->strategies.empty()) actions.notes.push_back(next->strategies);
  propose(std::move(next->plan), next->reason, now, actions);
  return absl::OkStatus();
}

void Planning::ask_for_models(Actions& actions) {
  ModelRequest request = planner_.modelling().take_request();
  if (request == nullptr) return;
  actions.model = std::move(request);
  if (std::string note = planner_.modelling().take_note(); !note.empty()) actions.notes.push_back(std::move(note));
}

void Planning::ask_for_first_models(Actions& actions) {
  planner_.modelling().want(in_force());
  ask_for_models(actions);
}

// Asks local rank 0 of a worker, if a change of strategies waits for its counts.
void Planning::ask_for_counts(absl::Duration now, Actions& actions) {
  if (!planner_.may_change(now) || roster_[0].state != Seat::State::kPresent) return;
  if (planner_.strategies().ask_for_counts(in_force(), now) || planner_.masters().ask_for_counts(in_force(), now)) {
    send(roster_, 0, CountPushPulls{}, actions);
  }
}

void Planning::on_step_time(const StepTime& step, absl::Duration now, Actions& actions) {
  if (is_proposed()) return;
  absl::Status status = planner_.masters().on_measured(in_force(), step, now);
  if (planner_.chooses_strategies()) status = planner_.strategies().on_measured(in_force(), step, now);
  ask_for_models(actions);
  if (!status.ok()) {
    actions.warnings.push_back(absl::StrCat("strategies stay as they are: their models fail: ", status.message()));
  }
}

void Planning::propose(plan::Plan plan, PlanReason reason, absl::Duration now, Actions& actions) {
  agreement_.propose(std::move(plan), reason, now);
  send_to_members_of(*agreement_.proposed(), roster_, Prepare{agreement_.proposed()}, actions);
}

bool Planning::commit_if_acknowledged(absl::Duration now, Actions& actions) {
  const std::shared_ptr<const plan::Plan> before = agreement_.commit_if_acknowledged();
  if (before == nullptr) return false;
  const plan::Plan& plan = in_force();
  send_to_members_of(plan, roster_, Commit{plan.epoch}, actions);
  actions.notes.push_back(absl::StrCat("plan committed: epoch ", plan.epoch, ", ", counted(plan.summers(), "summer"),
                                       ", ", counted(plan.tensors.size(), "tensor"), " in ",
                                       counted(plan.partitions.size(), "partition")));
  planner_.on_committed(agreement_.reason());
  if (!awaits_measurements()) planner_.modelling().want(plan);
  ask_for_models(actions);
  note_strategies(now, actions);
  update_summers(*before, now, actions);
  return true;
}

// Tells about a change of strategies that the plan in force makes.
void Planning::note_strategies(absl::Duration now, Actions& actions) {
  if (!began_.has_value()) began_ = now;
  std::optional<StrategyChange> change = planner_.strategies().on_plan(in_force(), now);
  if (std::optional<StrategyChange> tuned = planner_.masters().on_plan(in_force())) change = std::move(tuned);
  if (!change.has_value()) return;
  change->seconds = absl::ToDoubleSeconds(now - *began_);
  actions.notes.push_back(describe(*change));
  counter_.on_strategies_changed();
  strategy_changes_.push_back(*std::move(change));
  if (strategy_changes_.size() > kChangesKept) strategy_changes_.erase(strategy_changes_.begin());
}

// Brings the seats of summers up to date after a commit. `before`: the plan that was in force until then.
void Planning::update_summers(const plan::Plan& before, absl::Duration now, Actions& actions) {
  const plan::Plan& plan = in_force();
  for (uint32_t member = plan.workers; member < plan.members.size(); ++member) {
    const uint32_t seat = roster_.seat_of_member(member);
    if (!roster_.is_part_of(plan, seat)) continue;
    const bool is_new = roster_[seat].since == 0;
    roster_[seat].since = plan.members[member].since;
    if (is_new && before.epoch > 0) counter_.on_summer_came();
  }
  counter_.on_committed(agreement_.reason(), has_lost_summer(), now);
  for (uint32_t seat = roster_.ranks(); seat < roster_.size(); ++seat) {
    if (roster_[seat].leaving && !roster_.is_part_of(plan, seat)) release_summer(seat, now, actions);
  }
}

absl::StatusOr<bool> Planning::on_acknowledged(uint32_t seat, uint32_t epoch) {
  if (agreement_.is_proposed(epoch)) return std::exchange(roster_[seat].acknowledged, epoch) != epoch;
  if (epoch > agreement_.highest_epoch()) {
    return absl::InternalError(
        absl::StrCat(roster_.located(seat), " acknowledged the plan of epoch ", epoch, ", which was never proposed"));
  }
  // The member has caught up with the plan in force after its return.
  if (epoch == in_force().epoch) roster_[seat].acknowledged = std::max(roster_[seat].acknowledged, epoch);
  // Else it is a duplicate, or for a withdrawn plan, possibly of an earlier coordinator.
  GLN_RARE("coordinator: an acknowledgement comes too late");
  return false;
}

Finding Planning::on_refused(uint32_t seat, uint32_t epoch, const absl::Status& why, bool reattaching,
                             absl::Duration now, Actions& actions) {
  // The refused plan is withdrawn already: another member refused it first, or it was replaced. The next plan is
  // proposed to this member, too.
  if (!reattaching && agreement_.is_withdrawn(epoch)) return {};
  const std::string reason = absl::StrCat("can't follow the plan of epoch ", epoch, ": ", why.message());
  if (roster_.is_summer(seat)) return Loss{seat, absl::StrCat("it ", reason)};
  if (agreement_.is_proposed(epoch) && agreement_.reason() == PlanReason::kOptional) {
    back_off(absl::StrCat(roster_.located(seat), ": it ", reason), now, actions);
    return {};
  }
  const absl::StatusCode code = why.ok() ? absl::StatusCode::kUnknown : why.code();
  return Failure{absl::Status(code, absl::StrCat(roster_.located(seat), " ", reason)), seat};
}

// No acknowledgement is missing if a rank has left with an error meanwhile.
Finding Planning::check_overdue(absl::Duration now, Actions& actions) {
  if (!is_overdue(now)) return {};
  const std::vector<uint32_t> silent = agreement_.unacknowledged();
  if (silent.empty()) {
    withdraw(actions);
    return {};
  }
  if (agreement_.reason() == PlanReason::kOptional) {
    back_off(absl::StrCat(roster_.names(silent), " did not acknowledge it within ",
                          absl::FormatDuration(options_.change_timeout)),
             now, actions);
    return {};
  }
  if (roster_.is_summer(silent.front())) return Loss{silent.front(), "it does not acknowledge a plan"};
  return Failure{absl::DeadlineExceededError(
                     absl::StrCat(roster_.names(silent), " did not acknowledge the plan of epoch ",
                                  agreement_.proposed()->epoch, " within ", absl::FormatDuration(options_.deadline))),
                 silent.front(), true};
}

// Returns whether the proposed plan is overdue: after change_timeout for an optional plan, after the deadline for
// others.
bool Planning::is_overdue(absl::Duration now) const {
  if (!is_proposed()) return false;
  const bool optional = agreement_.reason() == PlanReason::kOptional;
  const absl::Duration limit = optional ? options_.change_timeout : options_.deadline;
  const bool in_time = now - agreement_.proposed_at() <= limit;
  return !in_time || (optional && GLN_INJECT("coordinator: a change is given up early"));
}

// Withdraws the proposed plan, which is optional, and begins or doubles the backoff of optional plans (planner.h).
void Planning::back_off(absl::string_view why, absl::Duration now, Actions& actions) {
  const absl::Duration pause = planner_.back_off(now);
  counter_.on_withdrawn();
  actions.warnings.push_back(absl::StrCat("the optional plan of epoch ", agreement_.proposed()->epoch,
                                          " is withdrawn: ", why, "; the next optional plan follows in ",
                                          absl::FormatDuration(pause)));
  withdraw(actions);
}

void Planning::withdraw_unless_needed(Actions& actions) {
  if (is_proposed() && agreement_.reason() != PlanReason::kNeeded) withdraw(actions);
}

// Withdraws the proposed plan.
void Planning::withdraw(Actions& actions) {
  send_to_members_of(*agreement_.proposed(), roster_, Withdraw{agreement_.proposed_epoch()}, actions);
  agreement_.withdraw();
  planner_.on_withdrawn();
}

void Planning::adopt(std::shared_ptr<const plan::Plan> plan, absl::Duration now, Actions& actions) {
  actions.notes.push_back(absl::StrCat("all members have returned: plan of epoch ", plan->epoch, ", ",
                                       counted(plan->tensors.size(), "tensor")));
  agreement_.adopt(std::move(plan));
  planner_.modelling().want(in_force());
  ask_for_models(actions);
  note_strategies(now, actions);
  for (uint32_t seat = 0; seat < roster_.size(); ++seat) catch_up(seat, actions);
}

// The committed plan is in force already, so its acknowledgement commits nothing.
void Planning::catch_up(uint32_t seat, Actions& actions) {
  const std::shared_ptr<const plan::Plan>& plan = agreement_.in_force();
  if (roster_[seat].committed < plan->epoch) {
    send(roster_, seat, Prepare{plan}, actions);
    send(roster_, seat, Commit{plan->epoch}, actions);
    // The committed plan replaces any plan that the member had prepared, so that one counts as not acknowledged.
    roster_[seat].acknowledged = std::min(roster_[seat].acknowledged, plan->epoch);
  }
  if (is_proposed()) {
    send(roster_, seat, Prepare{agreement_.proposed()}, actions);
  } else if (roster_[seat].prepared > plan->epoch) {
    send(roster_, seat, Withdraw{roster_[seat].prepared}, actions);
  }
}

void Planning::on_summer_joined(uint32_t seat, absl::Duration now) {
  roster_[seat].came_after = agreement_.highest_epoch();
  planner_.end_back_off(now);
}

void Planning::on_summer_leaves(uint32_t seat, bool reattaching, absl::Duration now, Actions& actions) {
  roster_[seat].leaving = true;
  planner_.end_back_off(now);
  if (!reattaching && !roster_.is_part_of(in_force(), seat)) release_summer(seat, now, actions);
}

void Planning::on_summer_lost(uint32_t seat, absl::string_view why, bool has_begun, absl::Duration now,
                              Actions& actions) {
  const Seat& summer = roster_[seat];
  actions.warnings.push_back(
      absl::StrCat(roster_.located(seat), " is lost: ", why,
                   has_begun ? "; other members take over its partitions" : "; the job begins without it"));
  if (summer.state == Seat::State::kPresent) {
    actions.sends.push_back({summer.stream, Rejected{absl::AbortedError(absl::StrCat("left out of the job: ", why))}});
  }
  if (vacate(seat, now, actions)) GLN_RARE("coordinator: a summer is lost that a plan on its way counts on");
  counter_.on_summer_lost(has_lost_summer(), now);
}

void Planning::on_summer_stayed_away(uint32_t seat, absl::Duration now, Actions& actions) {
  GLN_RARE("coordinator: a summer does not come back after a restart");
  actions.warnings.push_back(absl::StrCat(roster_.located(seat), " did not come back; the job goes on without it"));
  roster_.vacate(seat, Seat::State::kVacant, now);
  counter_.on_summer_lost(false, now);
}

void Planning::release_summer(uint32_t seat, absl::Duration now, Actions& actions) {
  actions.notes.push_back(absl::StrCat(roster_.located(seat), " leaves"));
  counter_.on_summer_left();
  send(roster_, seat, Goodbye{}, actions);
  vacate(seat, now, actions);
}

// Vacates a summer's seat. Withdraws a proposed plan that the summer is part of, since without its acknowledgement that
// plan could not be committed, and returns whether there was one.
bool Planning::vacate(uint32_t seat, absl::Duration now, Actions& actions) {
  const bool is_in_proposal = is_proposed() && roster_.is_part_of(*agreement_.proposed(), seat);
  roster_.vacate(seat, Seat::State::kVacant, now);
  if (is_in_proposal) withdraw(actions);
  return is_in_proposal;
}

}  // namespace gleaner::coordinator
