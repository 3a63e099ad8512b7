// Who comes, comes back and goes: the part of Core that a restarted coordinator lives by.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/faults.h"
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
  actions.sends.push_back({stream, Welcome{resume->member, summers(), resume->session, origin_.term}});
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
  tell(seat, Welcome{roster_[seat].welcomed_member, summers(), session, origin_.term}, actions);
  if (ending_) tell(seat, Ending{}, actions);
}

absl::Status Core::let_in(StreamId stream, const Identity& identity, const std::string& session, absl::Duration now,
                          Actions& actions) {
  if (recovering_ && recalled_ == nullptr && identity.role == Role::kSummer) {
    return absl::UnavailableError("this job is being taken up by a new coordinator; try again");
  }
  const bool known = !identity.index.has_value() || roster_.seat_of_index(Role::kSummer, *identity.index).has_value();
  if (identity.role == Role::kSummer && origin_.may_resume && !has_begun() && !known) {
    return absl::UnavailableError("this job has not begun, and begins without this summer; try again");
  }
  if (identity.role == Role::kSummer && has_begun()) return let_in_late(stream, identity, now, actions);
  GLN_ASSIGN_OR_RETURN(const uint32_t seat, roster_.find(identity));
  const Seat::State state = roster_[seat].state;
  const bool was_expected = state == Seat::State::kEmpty || state == Seat::State::kAway;
  const bool moved = proposed_ != nullptr && identity.address != roster_[seat].identity.address;
  // One that the first plan, on its way, does without.
  const bool left_out = moved || (proposed_ != nullptr && state == Seat::State::kVacant);
  if (roster_.is_summer(seat) && left_out) return let_in_late(stream, identity, now, actions);
  if (was_expected && (has_begun() || moved)) {
    lost(seat, has_begun() ? kAnew : "it came back with another address", actions);
    return why_failed();
  }
  GLN_RETURN_IF_ERROR(roster_.take(seat, stream, identity, now));
  anybody_joined_ |= !roster_.is_summer(seat);
  welcome(seat, session, actions);
  actions.notes.push_back(absl::StrCat(roster_.located(seat), " joined: ", roster_.joined_ranks(), " of ",
                                       roster_.ranks(), options_.local_ranks == 1 ? " workers, " : " ranks, ",
                                       roster_.joined_summers(), " of ", summers(), " summers"));
  if (proposed_ != nullptr) tell(seat, Prepare{proposed_}, actions);
  begin_if_all_here(now, actions);
  return absl::OkStatus();
}

void Core::begin_if_all_here(absl::Duration now, Actions& actions) {
  if (outcome_.has_value() || has_begun() || proposed_ != nullptr) return;
  check_exits_before_start(actions);
  if (has_failed() || !roster_.complete()) return;
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
  if (resume.term > origin_.term) {
    GLN_RARE("coordinator: a member of its successor comes to the one that was replaced");
    return absl::UnavailableError("another coordinator has taken up this job since");
  }
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
    if (has_failed()) return why_failed();
  }
  if (resume.session != session_) {
    return absl::FailedPreconditionError("this member comes from another run of the job");
  }
  if (!recovering_ && resume.committed > committed_->epoch) {
    // Not of a later term: two of the same term are not told apart otherwise.
    return absl::UnavailableError(absl::StrCat("this coordinator is at epoch ", committed_->epoch,
                                               ", the member at epoch ", resume.committed,
                                               ": another coordinator has gone on"));
  }
  GLN_ASSIGN_OR_RETURN(const uint32_t seat, find_again(identity, resume));
  GLN_RETURN_IF_ERROR(roster_.take(seat, stream, identity, now));
  highest_epoch_ = std::max({highest_epoch_, resume.committed, resume.prepared});
  roster_[seat].committed = resume.committed;
  roster_[seat].digest = resume.plan_digest;
  if (roster_.is_summer(seat)) {
    const plan::Plan* const known = recovering_ ? recalled_.get() : committed_.get();
    if (known != nullptr && resume.committed > 0 && !fits(seat, *known)) {
      turn_away(seat, *known, now, actions);
      go_on_if_all_back(now, actions);
      return absl::OkStatus();
    }
  }
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
    if (roster_[seat].state != Seat::State::kPresent) continue;
    if (!roster_.is_summer(seat)) {
      // A rank that was already welcomed under `session` has a plan of that session prepared.
      if (roster_[seat].welcomed_session != session) return lost(seat, kAnew, actions);
      continue;
    }
    // The plan may do without this summer, or have it in another place.
    tell(seat, Rejected{absl::UnavailableError("this job is being taken up by a new coordinator; try again")}, actions);
    roster_.vacate(seat, Seat::State::kEmpty, last_tick_);
    roster_[seat].identity.address.clear();  // whose place it is, is not known yet
  }
}

// The seat of a member that has a plan, or was told one. A summer that is no part of the job any more may join as a new
// one.
absl::StatusOr<uint32_t> Core::find_again(const Identity& identity, const Resume& resume) {
  const bool plan_is_unknown = recovering_ && recalled_ == nullptr;
  absl::StatusOr<uint32_t> seat = roster_.find_again(identity, resume.member, plan_is_unknown);
  if (identity.role != Role::kSummer) return seat;
  if (!seat.ok()) {
    return absl::Status(plan_is_unknown ? absl::StatusCode::kUnavailable : absl::StatusCode::kAborted,
                        seat.status().message());
  }
  const Seat& found = roster_[*seat];
  const bool is_its_own = found.identity.address.empty() || found.identity.address == identity.address;
  if (found.state != Seat::State::kVacant && is_its_own) return seat;
  GLN_RARE("coordinator: one that was taken for lost is back");
  if (plan_is_unknown) return absl::UnavailableError("this job is being taken up by a new coordinator; try again");
  return absl::AbortedError(
      absl::StrCat(roster_.name(*seat), " was taken for lost, and the job has gone on without it"));
}

// --- going

// Whether this member may come back.
bool Core::away(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions) {
  const bool comes_back = !session_.empty();  // members without one don't look for the coordinator again
  if (!recovering_ && (options_.return_timeout <= absl::ZeroDuration() || !comes_back)) return false;
  roster_.vacate(seat, Seat::State::kAway, now);
  actions.warnings.push_back(absl::StrCat(roster_.located(seat), ": ", why, "; waiting for it to come back"));
  ask_for_plan(actions);
  return true;
}

void Core::summer_ended(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions) {
  if (roster_[seat].takes_part()) {
    return remove_summer(seat, why, now, actions);
  }
  if (roster_[seat].state != Seat::State::kEmpty) return;
  GLN_RARE("coordinator: a summer has ended that is waited for");
  actions.notes.push_back(absl::StrCat(roster_.name(seat), " is not waited for any more: ", why));
  roster_.vacate(seat, Seat::State::kVacant, now);
  go_on_if_all_back(now, actions);
  begin_if_all_here(now, actions);
}

void Core::on_ended(Role role, uint32_t index, const absl::Status& how, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> first = roster_.seat_of_index(role, index);
  if (!first.has_value() || outcome_.has_value()) return;
  const uint32_t end = *first + (role == Role::kWorker ? options_.local_ranks : 1);
  bool known = true;
  for (uint32_t seat = *first; seat < end; ++seat) known = known && roster_[seat].state == Seat::State::kLeft;
  if (known) return;
  if (role == Role::kSummer) {
    return summer_ended(*first, how.ok() ? "it has ended" : how.message(), now, actions);
  }
  if (!how.ok()) return lost(*first, how.message(), actions);
  const bool may_have_begun = has_begun() || origin_.may_resume;
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
