// A job that is taken up from what its members hold (docs/protocol.md, Re-attachment).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/faults.h"
#include "common/proto/plan_codec.h"
#include "operator/coordinator/core.h"

namespace gleaner::coordinator {
namespace {

// Members look for a new coordinator every 5 s at the latest.
constexpr absl::Duration kSummersReturn = absl::Seconds(6);

}  // namespace

// Two workers that follow different plans of one epoch. A summer that does so is turned away when the plan is known.
void Core::check_digest(uint32_t seat, Actions& actions) {
  if (roster_.is_summer(seat)) return;
  const Seat& back = roster_[seat];
  const auto differs = [&](absl::string_view other) {
    fail(absl::FailedPreconditionError(absl::StrCat(roster_.located(seat), " and ", other,
                                                    " follow different plans of epoch ", back.committed,
                                                    "; nobody can say which one is right")),
         seat, actions);
  };
  if (back.committed == 0 || outcome_.has_value()) return;
  if (!recovering_) {
    if (back.committed == committed_->epoch && back.digest != proto::digest(*committed_)) differs("the others");
    return;
  }
  for (uint32_t other = 0; other < roster_.ranks(); ++other) {
    if (roster_[other].state != Seat::State::kPresent || roster_[other].committed != back.committed) continue;
    if (roster_[other].digest != back.digest) return differs(roster_.located(other));
    if (other != seat) return;  // which was compared with the rest when it came
  }
}

// Ranks are all needed, so the plan of the one that is furthest is found without asking summers; unless the first plan
// has reached none of them.
void Core::ask_for_plan(Actions& actions) {
  if (!recovering_ || outcome_.has_value()) return;
  bool have_plan = !roster_.all_ranks_here();
  for (uint32_t seat = 0; seat < roster_.ranks(); ++seat) have_plan = have_plan || roster_[seat].committed > 0;
  const uint32_t asked_seats = have_plan ? roster_.ranks() : roster_.size();
  std::optional<uint32_t> best;
  for (uint32_t seat = 0; seat < asked_seats; ++seat) {
    if (roster_[seat].state != Seat::State::kPresent) continue;
    if (!best.has_value() || roster_[seat].committed > roster_[*best].committed) best = seat;
  }
  if (asked_.has_value() && roster_[*asked_].state != Seat::State::kPresent) asked_ = std::nullopt;
  const uint32_t known = recalled_ == nullptr ? 0 : recalled_->epoch;
  const uint32_t asked = asked_.has_value() ? roster_[*asked_].committed : 0;
  if (!best.has_value() || roster_[*best].committed <= std::max(known, asked)) return;
  asked_ = best;
  tell(*best, Recall{}, actions);
}

void Core::on_recalled(StreamId stream, plan::Plan plan, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = heard(stream, now);
  if (!seat.has_value() || !recovering_ || (recalled_ != nullptr && plan.epoch <= recalled_->epoch)) return;
  const bool is_ours = plan.workers == options_.workers && plan.local_ranks == options_.local_ranks;
  if (plan.epoch != roster_[*seat].committed || proto::digest(plan) != roster_[*seat].digest || !is_ours) {
    return fail(absl::InternalError(absl::StrCat(roster_.located(*seat), " told a plan of epoch ", plan.epoch, " for ",
                                                 plan.workers, " workers that is not the one it said it follows")),
                *seat, actions);
  }
  seat_summers(plan, now, actions);
  recalled_ = std::make_shared<const plan::Plan>(std::move(plan));
  // Those still missing are named, and known again, by their addresses.
  for (uint32_t member = 0; member < recalled_->members.size(); ++member) {
    Seat& seat_of_member = roster_[roster_.seat_of_member(member)];
    if (seat_of_member.state != Seat::State::kEmpty) continue;
    seat_of_member.identity.address = recalled_->members[member].address;
    seat_of_member.identity.endpoints = recalled_->members[member].endpoints;
  }
  asked_ = std::nullopt;
  go_on_if_all_back(now, actions);
}

// The summers' seats as this plan has them.
void Core::seat_summers(const plan::Plan& plan, absl::Duration now, Actions& actions) {
  const auto places = static_cast<uint32_t>(plan.members.size()) - plan.workers;
  for (uint32_t seat = roster_.ranks(); seat < roster_.size(); ++seat) {
    if (roster_[seat].state == Seat::State::kPresent && !fits(seat, plan)) turn_away(seat, plan, now, actions);
  }
  roster_.fit_summers(places);
  for (uint32_t place = 0; place < places; ++place) {
    const uint32_t seat = roster_.ranks() + place;
    const plan::Member& summer = plan.members[plan.workers + place];
    if (!summer.is_here() && roster_[seat].state == Seat::State::kEmpty) {
      roster_.vacate(seat, Seat::State::kVacant, now);
    }
    // A summer that was turned away has left its place: the next summer there is another member.
    if (roster_[seat].state != Seat::State::kVacant) roster_[seat].since = summer.since;
  }
}

// Whether a summer that has come back is the one that this plan has in its place, and no further.
bool Core::fits(uint32_t seat, const plan::Plan& plan) const {
  const uint32_t member = roster_.member_of(seat);
  const Seat& back = roster_[seat];
  if (member >= plan.members.size() || !plan.members[member].is_here()) return false;
  if (plan.members[member].address != back.identity.address || back.committed > plan.epoch) return false;
  return back.committed < plan.epoch || back.digest == proto::digest(plan);
}

// It may join as a new one. Somebody else is waited for if the plan has another in this place.
void Core::turn_away(uint32_t seat, const plan::Plan& plan, absl::Duration now, Actions& actions) {
  GLN_RARE("coordinator: a summer is back that the plan in force does without");
  const uint32_t member = roster_.member_of(seat);
  const bool is_here = member < plan.members.size() && plan.members[member].is_here();
  const bool is_other = is_here && plan.members[member].address != roster_[seat].identity.address;
  actions.notes.push_back(absl::StrCat(roster_.located(seat), " is not of the plan of epoch ", plan.epoch));
  tell(seat, Rejected{absl::AbortedError("the job has gone on without this summer")}, actions);
  roster_.vacate(seat, Seat::State::kVacant, now);
  if (is_other && recovering_) roster_.vacate(seat, Seat::State::kEmpty, now);
}

// Workers are all needed; a summer that does not come back is lost.
void Core::go_on_without_summers(absl::Duration now, Actions& actions) {
  if (!recovering_ || recalled_ == nullptr || !roster_.all_ranks_here()) {
    ranks_back_.reset();
    return;
  }
  if (!ranks_back_.has_value()) ranks_back_ = now;
  if (now - *ranks_back_ <= kSummersReturn) return;
  for (const uint32_t seat : roster_.missing()) {
    GLN_RARE("coordinator: a summer does not come back after a restart");
    actions.warnings.push_back(absl::StrCat(roster_.located(seat), " did not come back; the job goes on without it"));
    ++changes_.lost;
    roster_.vacate(seat, Seat::State::kVacant, now);
  }
  go_on_if_all_back(now, actions);
}

void Core::go_on_if_all_back(absl::Duration now, Actions& actions) {
  if (!recovering_ || recalled_ == nullptr || outcome_.has_value() || !roster_.complete()) return;
  for (uint32_t seat = 0; seat < roster_.ranks(); ++seat) {
    if (roster_[seat].state == Seat::State::kPresent && roster_[seat].committed > recalled_->epoch) return;
  }
  recovering_ = false;
  committed_ = std::exchange(recalled_, nullptr);
  progress_.on_plan(*committed_);
  actions.notes.push_back(absl::StrCat("everybody is back: plan of epoch ", committed_->epoch, ", ",
                                       committed_->tensors.size(), " tensors"));
  for (uint32_t seat = 0; seat < roster_.size(); ++seat) catch_up(seat, actions);
  declarations_.adopt(committed_->tensors);
  for (const Declared& early : std::exchange(declared_early_, {})) {
    if (!outcome_.has_value()) declare(early.seat, early.tensors, early.operations, now, actions);
  }
  for (uint32_t seat = 0; seat < roster_.ranks(); ++seat) {
    // Whoever is behind is told to stay by the plan that it gets.
    const bool leaves = std::exchange(roster_[seat].leaving, false) && roster_[seat].state == Seat::State::kPresent;
    if (leaves && roster_[seat].leaves_at == committed_->epoch) leave_well(seat, now, actions);
  }
  for (const auto& [member, why] : std::exchange(accused_, {})) {
    if (member < committed_->members.size()) remove_summer(roster_.seat_of_member(member), why, now, actions);
  }
  propose_next(now, actions);
  check_declarations(now, actions);
}

// What it missed. Its acknowledgement of a plan that all others have followed already changes nothing.
void Core::catch_up(uint32_t seat, Actions& actions) {
  if (outcome_.has_value()) return;
  if (roster_[seat].committed < committed_->epoch) {
    tell(seat, Prepare{committed_}, actions);
    tell(seat, Commit{committed_->epoch}, actions);
    // That takes the place of whatever else it had prepared.
    roster_[seat].acknowledged = std::min(roster_[seat].acknowledged, committed_->epoch);
  }
  if (proposed_ != nullptr) tell(seat, Prepare{proposed_}, actions);
}

}  // namespace gleaner::coordinator
