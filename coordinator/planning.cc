#include "coordinator/planning.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"

namespace gleaner::coordinator {

absl::Status Planning::propose_first(absl::Duration now, Actions& actions) {
  GLN_ASSIGN_OR_RETURN(plan::Plan plan, planner_.make_first(agreement_.highest_epoch() + 1));
  propose(std::move(plan), PlanReason::kNeeded, now, actions);
  return absl::OkStatus();
}

absl::Status Planning::propose_next(bool ending, absl::Duration now, Actions& actions) {
  if (is_proposed() || !has_plan()) return absl::OkStatus();
  if (GLN_INJECT("coordinator: the next plan waits for a tick")) return absl::OkStatus();
  GLN_ASSIGN_OR_RETURN(std::optional<Planner::Proposal> next,
                       planner_.make_next(in_force(), agreement_.highest_epoch() + 1, ending, now));
  if (next.has_value()) propose(std::move(next->plan), next->reason, now, actions);
  return absl::OkStatus();
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
  actions.notes.push_back(absl::StrCat("plan committed: epoch ", plan.epoch, ", ", plan.summers(), " summers, ",
                                       plan.tensors.size(), " tensors in ", plan.partitions.size(), " partitions"));
  planner_.on_committed(agreement_.reason());
  update_summers(*before, now, actions);
  return true;
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
  counter_.on_committed(agreement_.reason(), roster_.is_any_summer_lost(plan), now);
  for (uint32_t seat = roster_.ranks(); seat < roster_.size(); ++seat) {
    if (roster_[seat].leaving && !roster_.is_part_of(plan, seat)) release_summer(seat, now, actions);
  }
}

bool Planning::is_overdue(absl::Duration now) const {
  if (!is_proposed()) return false;
  const bool optional = agreement_.reason() == PlanReason::kOptional;
  const absl::Duration limit = optional ? options_.change_timeout : options_.deadline;
  const bool in_time = now - agreement_.proposed_at() <= limit;
  return !in_time || (optional && GLN_INJECT("coordinator: a change is given up early"));
}

void Planning::back_off(absl::string_view why, absl::Duration now, Actions& actions) {
  const absl::Duration pause = planner_.back_off(now);
  counter_.on_withdrawn();
  actions.warnings.push_back(absl::StrCat("the optional plan of epoch ", agreement_.proposed()->epoch,
                                          " is withdrawn: ", why, "; the next optional plan follows in ",
                                          absl::FormatDuration(pause)));
  withdraw();
}

void Planning::withdraw_unless_needed() {
  if (is_proposed() && agreement_.reason() != PlanReason::kNeeded) withdraw();
}

void Planning::withdraw() {
  agreement_.withdraw();
  planner_.on_withdrawn();
}

// The committed plan is in force already, so its acknowledgement has no effect.
void Planning::catch_up(uint32_t seat, Actions& actions) {
  const std::shared_ptr<const plan::Plan>& plan = agreement_.in_force();
  if (roster_[seat].committed < plan->epoch) {
    send(roster_, seat, Prepare{plan}, actions);
    send(roster_, seat, Commit{plan->epoch}, actions);
    // The committed plan replaces any plan that the member had prepared, so that one counts as not acknowledged.
    roster_[seat].acknowledged = std::min(roster_[seat].acknowledged, plan->epoch);
  }
  if (is_proposed()) send(roster_, seat, Prepare{agreement_.proposed()}, actions);
}

void Planning::on_summer_joined(uint32_t seat, absl::Duration now) {
  roster_[seat].came_after = agreement_.highest_epoch();
  planner_.end_back_off(now);
}

void Planning::on_summer_leaves(uint32_t seat, absl::Duration now) {
  roster_[seat].leaving = true;
  planner_.end_back_off(now);
}

void Planning::on_summer_lost(uint32_t seat, absl::Duration now) {
  if (vacate(seat, now)) GLN_RARE("coordinator: a summer is lost that a plan on its way counts on");
  counter_.on_summer_lost(roster_.is_any_summer_lost(in_force()), now);
}

void Planning::on_summer_stayed_away(uint32_t seat, absl::Duration now) {
  roster_.vacate(seat, Seat::State::kVacant, now);
  counter_.on_summer_lost(false, now);
}

void Planning::release_summer(uint32_t seat, absl::Duration now, Actions& actions) {
  actions.notes.push_back(absl::StrCat(roster_.located(seat), " leaves"));
  counter_.on_summer_left();
  send(roster_, seat, Goodbye{}, actions);
  vacate(seat, now);
}

// Vacates a summer's seat. Withdraws a proposed plan that the summer is part of, since without its acknowledgement that
// plan could not be committed, and returns whether there was one.
bool Planning::vacate(uint32_t seat, absl::Duration now) {
  const bool is_in_proposal = is_proposed() && roster_.is_part_of(*agreement_.proposed(), seat);
  roster_.vacate(seat, Seat::State::kVacant, now);
  if (is_in_proposal) withdraw();
  return is_in_proposal;
}

}  // namespace gleaner::coordinator
