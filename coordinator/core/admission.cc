#include "coordinator/core/admission.h"

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/base/text_table.h"
#include "coordinator/core/reachability.h"
#include "coordinator/failures/outcome.h"

namespace gleaner::coordinator {
namespace {

absl::Status reattachment_is_under_way() {
  return absl::UnavailableError("this job is being taken up by a new coordinator; try again");
}

}  // namespace

absl::StatusOr<Admission::Decision> Admission::decide(const Identity& identity, bool ending) {
  const bool is_summer = identity.role == Role::kSummer;
  if (is_summer && reattachment_.lacks_plan()) return reattachment_is_under_way();
  const bool known = !identity.index.has_value() || roster_.seat_of_index(Role::kSummer, *identity.index).has_value();
  if (is_summer && origin_.may_resume && !has_begun() && !known) {
    return absl::UnavailableError("this job has not begun, and begins without this summer; try again");
  }
  if (is_summer && has_begun()) return decide_late(identity, ending);
  GLN_ASSIGN_OR_RETURN(const uint32_t seat, roster_.find(identity));
  const Seat::State state = roster_[seat].state;
  const bool was_expected = state == Seat::State::kEmpty || state == Seat::State::kAway;
  const bool moved = planning_.is_proposed() && identity.address != roster_[seat].identity.address;
  // The first plan is proposed already, and has this summer at another address or not at all.
  const bool left_out = moved || (planning_.is_proposed() && state == Seat::State::kVacant);
  if (is_summer && left_out) return decide_late(identity, ending);
  if (was_expected && has_begun()) return Decision{Decision::Kind::kIsLost, seat, false, kStateIsLost};
  if (was_expected && moved) return Decision{Decision::Kind::kIsLost, seat, false, "it returned with another address"};
  return Decision{Decision::Kind::kJoins, seat};
}

absl::StatusOr<Admission::Decision> Admission::decide_late(const Identity& identity, bool ending) {
  if (reattachment_.is_under_way()) return reattachment_is_under_way();
  if (ending) return absl::FailedPreconditionError("this job is about to end");
  if (uint64_t{options_.workers} + roster_.summers() >= plan::kMaxMembers) {
    return absl::ResourceExhaustedError(absl::StrCat("this job has ", plan::kMaxMembers, " members already"));
  }
  const uint32_t seat = roster_.place_for(identity);
  if (roster_[seat].state == Seat::State::kPresent) {
    return absl::UnavailableError(
        absl::StrCat(roster_.located(seat), " has joined already, and is not known to have ended; try again"));
  }
  const bool replaces = roster_[seat].state == Seat::State::kAway;
  if (replaces) GLN_RARE("coordinator: a summer is started anew before it was missed");
  return Decision{Decision::Kind::kJoinsLate, seat, replaces};
}

absl::Status Admission::seat_new(const Decision& decision, StreamId stream, const Identity& identity,
                                 const std::string& session, bool ending, absl::Duration now, Actions& actions) {
  const uint32_t seat = decision.seat;
  GLN_RETURN_IF_ERROR(roster_.take(seat, stream, identity, now));
  if (decision.kind == Decision::Kind::kJoinsLate) {
    welcome(seat, session_, ending, actions);
    actions.notes.push_back(absl::StrCat(roster_.located(seat), " joined the running job"));
    return absl::OkStatus();
  }
  reject_out_of_reach(identity, now, actions);
  welcome(seat, session, ending, actions);
  actions.notes.push_back(absl::StrCat(roster_.located(seat), " joined: ", roster_.joined_ranks(), " of ",
                                       counted(roster_.ranks(), options_.local_ranks == 1 ? "worker" : "rank"), ", ",
                                       roster_.joined_summers(), " of ", counted(roster_.summers(), "summer")));
  return absl::OkStatus();
}

// Rejects the members that this newcomer can't reach, unless the job has begun. The job waits for them to come again.
void Admission::reject_out_of_reach(const Identity& newcomer, absl::Duration now, Actions& actions) {
  if (has_begun() || planning_.is_proposed()) return;
  for (const OutOfReach& other : find_out_of_reach(roster_, newcomer, options_.launcher.has_hosts_file)) {
    ++rejected_;
    actions.warnings.push_back(absl::StrCat("a member was sent away: ", other.why.message()));
    send(roster_, other.seat, Rejected{other.why}, actions);
    roster_.vacate(other.seat, Seat::State::kEmpty, now);
  }
}

void Admission::reject(StreamId stream, const absl::Status& why, Actions& actions) {
  ++rejected_;
  actions.warnings.push_back(absl::StrCat("a member was not admitted: ", why.message()));
  actions.sends.push_back({stream, Rejected{why}});
}

bool Admission::stop_waiting_for(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions) {
  if (roster_[seat].state != Seat::State::kEmpty) return false;
  GLN_RARE("coordinator: a summer has ended that is waited for");
  actions.notes.push_back(absl::StrCat("the job does not wait for ", roster_.name(seat), " any more: ", why));
  roster_.vacate(seat, Seat::State::kVacant, now);
  return true;
}

absl::Status Admission::set_summers(uint32_t summers, Phase phase, Actions& actions) {
  if (phase != Phase::kGathering || planning_.is_proposed()) {
    return absl::FailedPreconditionError("the job has a plan, so its number of summers is fixed");
  }
  if (uint64_t{options_.workers} + summers > plan::kMaxMembers) {
    return absl::InvalidArgumentError(absl::StrCat(counted(options_.workers, "worker"), " and ",
                                                   counted(summers, "summer"), "; expected at most ", plan::kMaxMembers,
                                                   " members in all"));
  }
  for (const StreamId stream : roster_.set_summers(summers)) {
    actions.sends.push_back(
        {stream, Rejected{absl::FailedPreconditionError("the job has enough summers, and begins without this one")}});
  }
  return absl::OkStatus();
}

absl::Status Admission::check_coordinator(const Resume& resume) const {
  if (resume.term > origin_.term) {
    GLN_RARE("coordinator: a member of its successor comes to the one that was replaced");
    return absl::UnavailableError("another coordinator has taken up this job meanwhile");
  }
  if (!has_begun() && resume.committed > 0 && !origin_.may_resume) {
    return absl::FailedPreconditionError(
        absl::StrCat("this coordinator was started anew and can't take up a job that follows a plan of epoch ",
                     resume.committed, " already; the member goes on without a coordinator"));
  }
  return absl::OkStatus();
}

// Returns OK if a returning member belongs to this run of the job and follows no later plan than this coordinator.
absl::Status Admission::check_session(const Resume& resume) const {
  if (resume.session != session_) {
    return absl::FailedPreconditionError("this member belongs to another run of the job");
  }
  const uint32_t epoch = planning_.in_force().epoch;
  if (!reattachment_.is_under_way() && resume.committed > epoch) {
    // check_coordinator() does not detect another coordinator of the same term; the epoch does.
    return absl::UnavailableError(absl::StrCat("this coordinator is at epoch ", epoch, ", the member at epoch ",
                                               resume.committed, ": another coordinator has gone on"));
  }
  return absl::OkStatus();
}

const std::string& Admission::session_for(const Resume& resume) const {
  return origin_.may_resume && !planning_.is_proposed() ? resume.session : session_;
}

// Returns the seat of a returning member.
absl::StatusOr<uint32_t> Admission::find_seat(const Identity& identity, const Resume& resume) {
  const bool lacks_plan = reattachment_.lacks_plan();
  absl::StatusOr<uint32_t> seat = roster_.find_again(identity, resume.member, lacks_plan);
  if (identity.role != Role::kSummer) return seat;
  if (!seat.ok()) {
    return absl::Status(lacks_plan ? absl::StatusCode::kUnavailable : absl::StatusCode::kAborted,
                        seat.status().message());
  }
  const Seat& found = roster_[*seat];
  const bool is_its_own = found.identity.address.empty() || found.identity.address == identity.address;
  if (found.state != Seat::State::kVacant && is_its_own) return seat;
  GLN_RARE("coordinator: one that was taken for lost is back");
  if (lacks_plan) return reattachment_is_under_way();
  return absl::AbortedError(
      absl::StrCat(roster_.name(*seat), " was taken for lost, and the job has gone on without it"));
}

absl::StatusOr<uint32_t> Admission::seat_again(StreamId stream, const Identity& identity, const Resume& resume,
                                               absl::Duration now) {
  GLN_RETURN_IF_ERROR(check_session(resume));
  GLN_ASSIGN_OR_RETURN(const uint32_t seat, find_seat(identity, resume));
  GLN_RETURN_IF_ERROR(roster_.take(seat, stream, identity, now));
  roster_[seat].committed = resume.committed;
  roster_[seat].prepared = resume.prepared;
  roster_[seat].digest = resume.plan_digest;
  return seat;
}

void Admission::welcome_back(uint32_t seat, bool ending, Actions& actions) {
  welcome(seat, session_, ending, actions);
  actions.notes.push_back(absl::StrCat(
      roster_.located(seat), " has returned, at epoch ", roster_[seat].committed,
      reattachment_.is_under_way() ? absl::StrCat(": members still missing: ", roster_.still_to_come()) : ""));
}

std::optional<uint32_t> Admission::take_up(const std::string& session, absl::Duration now, Actions& actions) {
  session_ = session;
  for (uint32_t seat = 0; seat < roster_.size(); ++seat) {
    if (roster_[seat].state != Seat::State::kPresent) continue;
    if (!roster_.is_summer(seat)) {
      // A rank that was welcomed under `session` has prepared a plan of that session. Any other rank was started again.
      if (roster_[seat].welcomed_session != session) return seat;
      continue;
    }
    send(roster_, seat, Rejected{reattachment_is_under_way()}, actions);
    roster_.vacate(seat, Seat::State::kEmpty, now);
    roster_[seat].identity.address.clear();  // the plan's member at this place is not known yet
  }
  return std::nullopt;
}

void Admission::welcome(uint32_t seat, const std::string& session, bool ending, Actions& actions) {
  roster_[seat].welcomed_member = roster_.member_of(seat);
  roster_[seat].welcomed_session = session;
  send(roster_, seat, Welcome{roster_[seat].welcomed_member, roster_.summers(), session, origin_.term}, actions);
  if (ending) send(roster_, seat, Ending{roster_.workers_that_left()}, actions);
}

void Admission::correct_welcomes(Actions& actions) {
  for (uint32_t seat = 0; seat < roster_.size(); ++seat) {
    const bool is_right =
        roster_[seat].welcomed_session == session_ && roster_[seat].welcomed_member == roster_.member_of(seat);
    if (!is_right) welcome(seat, session_, false, actions);
  }
}

absl::Status Admission::send_outcome(StreamId stream, const std::optional<Resume>& resume, const absl::Status& outcome,
                                     Actions& actions) const {
  // If the job ended before any member returned, a restarted coordinator does not know the session.
  const bool is_member = resume.has_value() && (resume->session == session_ || (origin_.may_resume && !has_begun()));
  if (!is_member) return has_ended(outcome);
  actions.sends.push_back({stream, Welcome{resume->member, roster_.summers(), resume->session, origin_.term}});
  if (outcome.ok()) {
    actions.sends.push_back({stream, Finished{}});
  } else {
    actions.sends.push_back({stream, Failed{outcome}});
  }
  return absl::OkStatus();
}

}  // namespace gleaner::coordinator
