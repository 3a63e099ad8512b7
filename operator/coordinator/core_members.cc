// Who comes, comes back and goes: the part of Core that a restarted coordinator lives by.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/proto/plan_codec.h"
#include "operator/coordinator/core.h"

namespace gleaner::coordinator {
namespace {

constexpr char kAnew[] = "it was started anew, and has nothing of what the job had come to";

}  // namespace

void Core::on_joined(StreamId stream, const Identity& identity, const std::optional<Resume>& resume, absl::Duration now,
                     Actions& actions) {
  const bool has_state = resume.has_value() && (resume->committed > 0 || resume->prepared > 0);
  const absl::Status status = outcome_.has_value() ? tell_outcome(stream, resume, actions)
                              : has_state          ? take_back(stream, identity, *resume, now, actions)
                                                   : let_in(stream, identity, session_, now, actions);
  if (status.ok()) return;
  ++rejected_;
  actions.warnings.push_back(absl::StrCat("a member was not let in: ", status.message()));
  actions.sends.push_back({stream, Rejected{status}});
}

// Who was in when it ended, and missed that.
absl::Status Core::tell_outcome(StreamId stream, const std::optional<Resume>& resume, Actions& actions) const {
  // It may have ended before anybody came back to show a session.
  const bool is_ours = resume.has_value() && (resume->session == session_ || (origin_.may_resume && !has_begun()));
  if (!is_ours) return absl::FailedPreconditionError("this job has ended");
  actions.sends.push_back({stream, Welcome{resume->member, summers(), resume->session}});
  if (outcome_->ok()) {
    actions.sends.push_back({stream, Finished{}});
  } else {
    actions.sends.push_back({stream, Failed{*outcome_}});
  }
  return absl::OkStatus();
}

void Core::welcome(uint32_t seat, const std::string& session, Actions& actions) {
  roster_[seat].welcomed_member = roster_.member_of(seat);
  roster_[seat].welcomed_session = session;
  tell(seat, Welcome{roster_[seat].welcomed_member, summers(), session}, actions);
}

absl::Status Core::let_in(StreamId stream, const Identity& identity, const std::string& session, absl::Duration now,
                          Actions& actions) {
  if (recovering_ && recalled_ == nullptr && identity.role == Role::kSummer) {
    return absl::UnavailableError("this job is being taken up by a new coordinator; try again");
  }
  GLN_ASSIGN_OR_RETURN(const uint32_t seat, roster_.find(identity));
  const Seat::State state = roster_[seat].state;
  const bool was_expected = state == Seat::State::kEmpty || state == Seat::State::kAway;
  const bool moved = proposed_ != nullptr && identity.address != roster_[seat].identity.address;
  if (was_expected && (has_begun() || moved)) {
    lost(seat, has_begun() ? kAnew : "it came back with another address", actions);
    return *outcome_;
  }
  GLN_RETURN_IF_ERROR(roster_.take(seat, stream, identity, now));
  welcome(seat, session, actions);
  actions.notes.push_back(absl::StrCat(roster_.located(seat), " joined: ", roster_.joined_ranks(), " of ",
                                       roster_.ranks(), options_.local_ranks == 1 ? " workers, " : " ranks, ",
                                       roster_.joined_summers(), " of ", summers(), " summers"));
  if (proposed_ != nullptr) tell(seat, Prepare{proposed_}, actions);
  begin_if_all_here(now, actions);
  return absl::OkStatus();
}

void Core::begin_if_all_here(absl::Duration now, Actions& actions) {
  if (outcome_.has_value() || has_begun() || proposed_ != nullptr || !roster_.complete()) return;
  for (uint32_t seat = 0; seat < roster_.size(); ++seat) {
    if (roster_[seat].state == Seat::State::kLeft) {
      return fail(absl::UnavailableError(absl::StrCat(roster_.located(seat), " ended before the job had begun")), seat,
                  actions);
    }
    const bool heard_right =
        roster_[seat].welcomed_session == session_ && roster_[seat].welcomed_member == roster_.member_of(seat);
    if (!heard_right) welcome(seat, session_, actions);
  }
  propose_first(now, actions);
}

absl::Status Core::set_summers(uint32_t summers, absl::Duration now, Actions& actions) {
  if (outcome_.has_value() || has_begun() || proposed_ != nullptr) {
    return absl::FailedPreconditionError("the job has a plan, and with it its summers");
  }
  if (uint64_t{options_.workers} + summers > plan::kMaxMembers) {
    return absl::InvalidArgumentError(absl::StrCat(options_.workers, " workers and ", summers,
                                                   " summers; expected at most ", plan::kMaxMembers,
                                                   " members in all"));
  }
  for (const StreamId stream : roster_.set_summers(summers)) {
    actions.sends.push_back(
        {stream, Rejected{absl::FailedPreconditionError("the job begins without this summer; it has enough")}});
  }
  begin_if_all_here(now, actions);
  return absl::OkStatus();
}

// --- coming back

absl::Status Core::take_back(StreamId stream, const Identity& identity, const Resume& resume, absl::Duration now,
                             Actions& actions) {
  if (!has_begun()) {
    if (resume.committed == 0) {
      // As good as new, unless somebody comes who has a plan in force.
      highest_epoch_ = std::max(highest_epoch_, resume.prepared);
      const bool may_turn_out = origin_.may_resume && proposed_ == nullptr;
      return let_in(stream, identity, may_turn_out ? resume.session : session_, now, actions);
    }
    if (!origin_.may_resume) {
      return absl::FailedPreconditionError(
          absl::StrCat("this coordinator was started anew and can't take up a job that follows a plan of epoch ",
                       resume.committed, " already; what is planned goes on without it"));
    }
    GLN_RETURN_IF_ERROR(roster_.find_again(identity, resume.member, true).status());
    begin_recovery(resume.session, actions);
    if (outcome_.has_value()) return *outcome_;
  }
  if (resume.session != session_) {
    return absl::FailedPreconditionError("this member comes from another run of the job");
  }
  if (!recovering_ && resume.committed > committed_->epoch) {
    return absl::UnavailableError(absl::StrCat("this coordinator is at epoch ", committed_->epoch,
                                               ", the member at epoch ", resume.committed,
                                               ": another coordinator has gone on"));
  }
  GLN_ASSIGN_OR_RETURN(const uint32_t seat,
                       roster_.find_again(identity, resume.member, recovering_ && recalled_ == nullptr));
  GLN_RETURN_IF_ERROR(roster_.take(seat, stream, identity, now));
  roster_[seat].committed = resume.committed;
  roster_[seat].digest = resume.plan_digest;
  highest_epoch_ = std::max({highest_epoch_, resume.committed, resume.prepared});
  welcome(seat, session_, actions);
  actions.notes.push_back(
      absl::StrCat(roster_.located(seat), " is back, at epoch ", resume.committed,
                   recovering_ ? absl::StrCat(": still to come are ", roster_.still_to_come()) : ""));
  check_digest(seat, actions);
  if (recovering_) {
    ask_for_plan(actions);
    go_on_if_all_back(now, actions);
  } else {
    catch_up(seat, actions);
  }
  return absl::OkStatus();
}

void Core::begin_recovery(const std::string& session, Actions& actions) {
  recovering_ = true;
  session_ = session;
  actions.notes.emplace_back("the job goes on from before the coordinator's restart");
  for (uint32_t seat = 0; seat < roster_.size(); ++seat) {
    // Who was already welcomed under `session` has a plan of it prepared.
    if (roster_[seat].state != Seat::State::kPresent || roster_[seat].welcomed_session == session) continue;
    if (!roster_.is_summer(seat)) return lost(seat, kAnew, actions);
    // It may be one that the plan does without.
    tell(seat, Rejected{absl::UnavailableError("this job is being taken up by a new coordinator; try again")}, actions);
    roster_.vacate(seat, Seat::State::kEmpty, last_tick_);
  }
}

void Core::check_digest(uint32_t seat, Actions& actions) {
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
  for (uint32_t other = 0; other < roster_.size(); ++other) {
    if (roster_[other].state != Seat::State::kPresent || roster_[other].committed != back.committed) continue;
    if (roster_[other].digest != back.digest) return differs(roster_.located(other));
    if (other != seat) return;  // which was compared with the rest when it came
  }
}

void Core::ask_for_plan(Actions& actions) {
  if (!recovering_ || outcome_.has_value()) return;
  std::optional<uint32_t> best;
  for (uint32_t seat = 0; seat < roster_.size(); ++seat) {
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
  for (uint32_t other = roster_.ranks() + plan.summers(); other < roster_.size(); ++other) {
    if (roster_[other].state != Seat::State::kPresent) continue;
    return fail(absl::InternalError(absl::StrCat(roster_.located(other), " is not in the plan of epoch ", plan.epoch,
                                                 " that ", roster_.located(*seat), " follows")),
                other, actions);
  }
  roster_.fit_summers(plan.summers());
  recalled_ = std::make_shared<const plan::Plan>(std::move(plan));
  // Those still missing are named with their addresses.
  for (uint32_t member = 0; member < recalled_->members.size(); ++member) {
    std::string& address = roster_[roster_.seat_of_member(member)].identity.address;
    if (address.empty()) address = recalled_->members[member].address;
  }
  asked_ = std::nullopt;
  go_on_if_all_back(now, actions);
}

void Core::go_on_if_all_back(absl::Duration now, Actions& actions) {
  if (!recovering_ || recalled_ == nullptr || outcome_.has_value() || !roster_.complete()) return;
  for (uint32_t seat = 0; seat < roster_.size(); ++seat) {
    if (roster_[seat].state == Seat::State::kPresent && roster_[seat].committed > recalled_->epoch) return;
  }
  recovering_ = false;
  committed_ = std::exchange(recalled_, nullptr);
  actions.notes.push_back(absl::StrCat("everybody is back: plan of epoch ", committed_->epoch, ", ",
                                       committed_->tensors.size(), " tensors"));
  for (uint32_t seat = 0; seat < roster_.size(); ++seat) catch_up(seat, actions);
  declarations_.adopt(committed_->tensors);
  for (const Declared& early : std::exchange(declared_early_, {})) {
    if (!outcome_.has_value()) declare(early.seat, early.tensors, now, actions);
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
  }
  if (proposed_ != nullptr) tell(seat, Prepare{proposed_}, actions);
}

// --- going

// Whether this member may come back.
bool Core::away(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions) {
  if (!recovering_ && options_.return_timeout <= absl::ZeroDuration()) return false;
  roster_.vacate(seat, Seat::State::kAway, now);
  actions.warnings.push_back(absl::StrCat(roster_.located(seat), ": ", why, "; waiting for it to come back"));
  ask_for_plan(actions);
  return true;
}

void Core::on_ended(Role role, uint32_t index, const absl::Status& how, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> first = roster_.seat_of_index(role, index);
  if (!first.has_value() || outcome_.has_value()) return;
  const uint32_t end = *first + (role == Role::kWorker ? options_.local_ranks : 1);
  bool known = true;
  for (uint32_t seat = *first; seat < end; ++seat) known = known && roster_[seat].state == Seat::State::kLeft;
  if (known) return;
  const bool may_have_begun = has_begun() || origin_.may_resume;
  if (!how.ok()) return lost(*first, how.message(), actions);
  if (role == Role::kSummer) return lost(*first, "it ended before the job was over", actions);
  if (!may_have_begun) return lost(*first, "it ended before the job had begun", actions);
  for (uint32_t seat = *first; seat < end; ++seat) {
    tell(seat, Goodbye{}, actions);
    roster_.vacate(seat, Seat::State::kLeft, now);
  }
  actions.notes.push_back(absl::StrCat("worker ", index, " has ended"));
  after_leaving(now, actions);
  begin_if_all_here(now, actions);
}

}  // namespace gleaner::coordinator
