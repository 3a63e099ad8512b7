#include "coordinator/core/reattachment.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/proto/plan_codec.h"

namespace gleaner::coordinator {
namespace {

// Members look for a new coordinator at least every 5 s.
constexpr absl::Duration kSummersReturn = absl::Seconds(6);

}  // namespace

void Reattachment::begin(Actions& actions) {
  under_way_ = true;
  actions.notes.emplace_back("the job began under another coordinator, and goes on here");
}

// All ranks must return, so a summer is asked only if no rank has a plan: then the earlier coordinator had told only
// summers to commit the first plan.
void Reattachment::ask_for_plan(Actions& actions) {
  if (!under_way_) return;
  bool has_rank_plan = !roster_.all_ranks_here();
  for (uint32_t seat = 0; seat < roster_.ranks(); ++seat) has_rank_plan = has_rank_plan || roster_[seat].committed > 0;
  const uint32_t candidates = has_rank_plan ? roster_.ranks() : roster_.size();
  std::optional<uint32_t> best;
  for (uint32_t seat = 0; seat < candidates; ++seat) {
    if (roster_[seat].state != Seat::State::kPresent) continue;
    if (!best.has_value() || roster_[seat].committed > roster_[*best].committed) best = seat;
  }
  if (asked_.has_value() && roster_[*asked_].state != Seat::State::kPresent) asked_ = std::nullopt;
  const uint32_t known = plan_ == nullptr ? 0 : plan_->epoch;
  const uint32_t asked = asked_.has_value() ? roster_[*asked_].committed : 0;
  if (!best.has_value() || roster_[*best].committed <= std::max(known, asked)) return;
  asked_ = best;
  send(roster_, *best, Recall{}, actions);
}

absl::Status Reattachment::on_plan(uint32_t seat, plan::Plan plan, absl::Duration now, Actions& actions) {
  const bool fits_job = plan.workers == options_.workers && plan.local_ranks == options_.local_ranks;
  if (plan.epoch != roster_[seat].committed || proto::digest(plan) != roster_[seat].digest || !fits_job) {
    return absl::InternalError(absl::StrCat(roster_.located(seat), " sent a plan of epoch ", plan.epoch, " for ",
                                            plan.workers, " workers that is not the one it said it follows"));
  }
  seat_summers(plan, now, actions);
  plan_ = std::make_shared<const plan::Plan>(std::move(plan));
  // Missing members get the address that the plan has for them: messages name it, and it identifies a returning member.
  for (uint32_t member = 0; member < plan_->members.size(); ++member) {
    Seat& seat_of_member = roster_[roster_.seat_of_member(member)];
    if (seat_of_member.state != Seat::State::kEmpty) continue;
    seat_of_member.identity.address = plan_->members[member].address;
    seat_of_member.identity.endpoints = plan_->members[member].endpoints;
  }
  asked_ = std::nullopt;
  return absl::OkStatus();
}

// Makes the seats of summers match `plan`.
void Reattachment::seat_summers(const plan::Plan& plan, absl::Duration now, Actions& actions) {
  const auto places = static_cast<uint32_t>(plan.members.size()) - plan.workers;
  for (uint32_t seat = roster_.ranks(); seat < roster_.size(); ++seat) {
    const bool is_present = roster_[seat].state == Seat::State::kPresent;
    if (is_present && !is_summer_of(plan, roster_, seat)) reject_summer(seat, plan, now, actions);
  }
  roster_.fit_summers(places);
  for (uint32_t place = 0; place < places; ++place) {
    const uint32_t seat = roster_.ranks() + place;
    const plan::Member& summer = plan.members[plan.workers + place];
    if (!summer.is_here() && roster_[seat].state == Seat::State::kEmpty) {
      roster_.vacate(seat, Seat::State::kVacant, now);
    }
    // A rejected summer leaves a vacant seat. The next summer in that seat is another member, so it has no `since` yet.
    if (roster_[seat].state != Seat::State::kVacant) roster_[seat].since = summer.since;
  }
}

void Reattachment::reject_summer(uint32_t seat, const plan::Plan& plan, absl::Duration now, Actions& actions) {
  GLN_RARE("coordinator: a summer is back that the plan in force does without");
  const uint32_t member = roster_.member_of(seat);
  const bool is_here = member < plan.members.size() && plan.members[member].is_here();
  const bool is_other = is_here && plan.members[member].address != roster_[seat].identity.address;
  actions.notes.push_back(absl::StrCat(roster_.located(seat), " is not in the plan of epoch ", plan.epoch));
  send(roster_, seat, Rejected{absl::AbortedError("the job has gone on without this summer")}, actions);
  roster_.vacate(seat, Seat::State::kVacant, now);
  if (is_other) roster_.vacate(seat, Seat::State::kEmpty, now);
}

bool Reattachment::is_left_out(uint32_t seat, const plan::Plan& in_force) const {
  const plan::Plan* const known = under_way_ ? plan_.get() : &in_force;
  if (!roster_.is_summer(seat) || known == nullptr || roster_[seat].committed == 0) return false;
  return !is_summer_of(*known, roster_, seat);
}

// A summer with a different plan is rejected once the plan is known.
std::optional<Failure> Reattachment::check_digest(uint32_t seat, const plan::Plan& in_force) const {
  const Seat& back = roster_[seat];
  if (roster_.is_summer(seat) || back.committed == 0) return std::nullopt;
  std::string other;
  if (under_way_) {
    const std::optional<uint32_t> contradiction = find_contradiction(seat);
    if (contradiction.has_value()) other = roster_.located(*contradiction);
  } else if (back.committed == in_force.epoch && back.digest != proto::digest(in_force)) {
    other = "the other members";
  }
  if (other.empty()) return std::nullopt;
  return Failure{absl::FailedPreconditionError(absl::StrCat(roster_.located(seat), " and ", other,
                                                            " follow different plans of epoch ", back.committed,
                                                            "; it is not known which plan is right")),
                 seat};
}

// Returns another rank that follows a different plan of the same epoch as the rank in this seat.
std::optional<uint32_t> Reattachment::find_contradiction(uint32_t seat) const {
  const Seat& back = roster_[seat];
  for (uint32_t other = 0; other < roster_.ranks(); ++other) {
    if (roster_[other].state != Seat::State::kPresent || roster_[other].committed != back.committed) continue;
    if (roster_[other].digest != back.digest) return other;
    if (other != seat) return std::nullopt;  // `other` was compared with the rest when it returned
  }
  return std::nullopt;
}

bool Reattachment::are_summers_overdue(absl::Duration now) {
  if (!under_way_ || plan_ == nullptr || !roster_.all_ranks_here()) {
    ranks_back_.reset();
    return false;
  }
  if (!ranks_back_.has_value()) ranks_back_ = now;
  return now - *ranks_back_ > kSummersReturn;
}

bool Reattachment::is_complete() const {
  if (!under_way_ || plan_ == nullptr || !roster_.complete()) return false;
  for (uint32_t seat = 0; seat < roster_.ranks(); ++seat) {
    if (roster_[seat].state == Seat::State::kPresent && roster_[seat].committed > plan_->epoch) return false;
  }
  return true;
}

void Reattachment::keep_unreachable(uint32_t member, Unreachable report) {
  GLN_RARE("coordinator: a summer is out of reach while the job is being taken up");
  Unreachable& kept = unreachable_[member];
  if (kept.why.empty() || report.epoch > kept.epoch) kept = std::move(report);
}

void Reattachment::keep_leave(uint32_t rank, uint32_t epoch) {
  GLN_RARE("coordinator: a worker leaves while the job is being taken up");
  roster_[rank].leaving = true;
  roster_[rank].leaves_at = epoch;
}

Reattachment::Result Reattachment::finish() {
  under_way_ = false;
  std::erase_if(unreachable_, [this](const auto& report) { return report.first >= plan_->members.size(); });
  std::vector<uint32_t> leaving;
  for (uint32_t rank = 0; rank < roster_.ranks(); ++rank) {
    const bool leaves = std::exchange(roster_[rank].leaving, false) && roster_[rank].state == Seat::State::kPresent;
    if (leaves && roster_[rank].leaves_at == plan_->epoch) leaving.push_back(rank);
  }
  return {std::exchange(plan_, nullptr), std::exchange(declared_, {}), std::move(leaving),
          std::exchange(unreachable_, {})};
}

bool is_summer_of(const plan::Plan& plan, const Roster& roster, uint32_t seat) {
  const uint32_t member = roster.member_of(seat);
  const Seat& back = roster[seat];
  if (member >= plan.members.size() || !plan.members[member].is_here()) return false;
  if (plan.members[member].address != back.identity.address || back.committed > plan.epoch) return false;
  return back.committed < plan.epoch || back.digest == proto::digest(plan);
}

}  // namespace gleaner::coordinator
