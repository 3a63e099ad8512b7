// The part of Core that handles members which join, return and end.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/proto/plan_codec.h"
#include "coordinator/core.h"
#include "coordinator/fault_report.h"
#include "coordinator/reachability.h"

namespace gleaner::coordinator {

void Core::on_joined(StreamId stream, const Identity& identity, const std::optional<Resume>& resume, absl::Duration now,
                     Actions& actions) {
  const bool has_state = resume.has_value() && (resume->committed > 0 || resume->prepared > 0);
  absl::Status status;
  if (outcome_.has_ended()) {
    status = admission_.send_outcome(stream, resume, *outcome_.status(), actions);
  } else if (has_state) {
    status = readmit(stream, identity, *resume, now, actions);
  } else {
    status = check_reachable(roster_, identity);
    if (status.ok()) status = admit(stream, identity, admission_.session(), now, actions);
  }
  if (status.ok()) return;
  ++rejected_;
  actions.warnings.push_back(absl::StrCat("a member was not admitted: ", status.message()));
  actions.sends.push_back({stream, Rejected{status}});
}

absl::Status Core::admit(StreamId stream, const Identity& identity, const std::string& session, absl::Duration now,
                         Actions& actions) {
  GLN_ASSIGN_OR_RETURN(const Admission::Decision decision, admission_.decide(identity));
  if (decision.kind == Admission::Decision::Kind::kJoinsLate) return admit_late(stream, identity, now, actions);
  const uint32_t seat = decision.seat;
  if (decision.kind == Admission::Decision::Kind::kIsLost) {
    lose({seat, std::string(decision.why)}, now, actions);
    return outcome_.why_failed();
  }
  GLN_RETURN_IF_ERROR(roster_.take(seat, stream, identity, now));
  reject_out_of_reach(identity, now, actions);
  if (!roster_.is_summer(seat)) outcome_.on_rank_joined();
  admission_.welcome(seat, session, is_ending(), actions);
  actions.notes.push_back(absl::StrCat(roster_.located(seat), " joined: ", roster_.joined_ranks(), " of ",
                                       roster_.ranks(), options_.local_ranks == 1 ? " workers, " : " ranks, ",
                                       roster_.joined_summers(), " of ", roster_.summers(), " summers"));
  if (planning_.is_proposed()) send(roster_, seat, Prepare{planning_.agreement().proposed()}, actions);
  begin_if_all_joined(now, actions);
  return absl::OkStatus();
}

// Rejects the members that this newcomer can't reach, unless the job has begun. The job waits for them to come again.
void Core::reject_out_of_reach(const Identity& newcomer, absl::Duration now, Actions& actions) {
  if (has_begun() || planning_.is_proposed()) return;
  for (const OutOfReach& other : find_out_of_reach(roster_, newcomer)) {
    ++rejected_;
    actions.warnings.push_back(absl::StrCat("a member was sent away: ", other.why.message()));
    send(roster_, other.seat, Rejected{other.why}, actions);
    roster_.vacate(other.seat, Seat::State::kEmpty, now);
  }
}

// Admits a summer that joins while the job goes on.
absl::Status Core::admit_late(StreamId stream, const Identity& identity, absl::Duration now, Actions& actions) {
  GLN_RETURN_IF_ERROR(admission_.check_late(is_ending()));
  const uint32_t seat = roster_.place_for(identity);
  if (roster_[seat].state == Seat::State::kAway) {
    GLN_RARE("coordinator: a summer is started anew before it was missed");
    lose({seat, "its process was started again"}, now, actions);
  }
  if (roster_[seat].state == Seat::State::kPresent) {
    return absl::UnavailableError(
        absl::StrCat(roster_.located(seat), " has joined already, and is not known to have ended; try again"));
  }
  GLN_RETURN_IF_ERROR(roster_.take(seat, stream, identity, now));
  planning_.on_summer_joined(seat, now);
  admission_.welcome(seat, admission_.session(), is_ending(), actions);
  actions.notes.push_back(absl::StrCat(roster_.located(seat), " joined the running job"));
  propose_next(now, actions);
  return absl::OkStatus();
}

void Core::begin_if_all_joined(absl::Duration now, Actions& actions) {
  if (outcome_.has_ended() || has_begun() || planning_.is_proposed()) return;
  announce_failure(outcome_.check_exits_before_start(), actions);
  if (outcome_.has_failed() || !roster_.complete()) return;
  for (uint32_t seat = 0; seat < roster_.size(); ++seat) {
    if (roster_[seat].state == Seat::State::kLeft) {
      return fail(
          {absl::UnavailableError(absl::StrCat(roster_.located(seat), " ended before the job had begun")), seat},
          actions);
    }
  }
  admission_.correct_welcomes(actions);
  const absl::Status status = planning_.propose_first(now, actions);
  if (!status.ok()) fail({status, std::nullopt}, actions);
}

absl::Status Core::set_summers(uint32_t summers, absl::Duration now, Actions& actions) {
  if (outcome_.has_ended() || has_begun() || planning_.is_proposed()) {
    return absl::FailedPreconditionError("the job has a plan, so its number of summers is fixed");
  }
  if (uint64_t{options_.workers} + summers > plan::kMaxMembers) {
    return absl::InvalidArgumentError(absl::StrCat(options_.workers, " workers and ", summers,
                                                   " summers; expected at most ", plan::kMaxMembers,
                                                   " members in all"));
  }
  for (const StreamId stream : roster_.set_summers(summers)) {
    actions.sends.push_back(
        {stream, Rejected{absl::FailedPreconditionError("the job has enough summers, and begins without this one")}});
  }
  begin_if_all_joined(now, actions);
  return absl::OkStatus();
}

absl::Status Core::readmit(StreamId stream, const Identity& identity, const Resume& resume, absl::Duration now,
                           Actions& actions) {
  GLN_RETURN_IF_ERROR(admission_.check_coordinator(resume));
  if (!has_begun() && resume.committed == 0) {
    // A member without a plan in force joins like a new one.
    planning_.on_known_epoch(resume.prepared);
    return admit(stream, identity, admission_.session_for(resume), now, actions);
  }
  if (!has_begun()) {
    GLN_RETURN_IF_ERROR(roster_.find_again(identity, resume.member, true).status());
    begin_reattachment(resume.session, now, actions);
    if (outcome_.has_failed()) return outcome_.why_failed();
  }
  GLN_RETURN_IF_ERROR(admission_.check_session(resume));
  GLN_ASSIGN_OR_RETURN(const uint32_t seat, admission_.find_seat(identity, resume));
  GLN_RETURN_IF_ERROR(roster_.take(seat, stream, identity, now));
  planning_.on_known_epoch(std::max(resume.committed, resume.prepared));
  roster_[seat].committed = resume.committed;
  roster_[seat].digest = resume.plan_digest;
  const plan::Plan* const known = reattachment_.is_under_way() ? reattachment_.plan() : &plan();
  const bool is_compared = roster_.is_summer(seat) && known != nullptr && resume.committed > 0;
  if (is_compared && !is_summer_of(*known, roster_, seat)) {
    reject_returning_summer(seat, *known, now, actions);
    return absl::OkStatus();
  }
  admission_.welcome(seat, admission_.session(), is_ending(), actions);
  actions.notes.push_back(absl::StrCat(
      roster_.located(seat), " has returned, at epoch ", resume.committed,
      reattachment_.is_under_way() ? absl::StrCat(": members still missing: ", roster_.still_to_come()) : ""));
  check_digest(seat, actions);
  if (reattachment_.is_under_way()) {
    if (!outcome_.has_ended()) reattachment_.ask_for_plan(actions);
    finish_reattachment_if_complete(now, actions);
  } else if (!outcome_.has_ended()) {
    planning_.catch_up(seat, actions);
  }
  return absl::OkStatus();
}

// Rejects a returning summer that `plan` does not include. It may join as a new one.
void Core::reject_returning_summer(uint32_t seat, const plan::Plan& plan, absl::Duration now, Actions& actions) {
  if (!reattachment_.is_under_way()) return lose({seat, "it follows another plan"}, now, actions);
  reattachment_.reject_summer(seat, plan, now, actions);
  finish_reattachment_if_complete(now, actions);
}

void Core::begin_reattachment(const std::string& session, absl::Duration now, Actions& actions) {
  reattachment_.begin();
  actions.notes.emplace_back("the job began under another coordinator, and goes on here");
  const std::optional<uint32_t> lost = admission_.take_up(session, liveness_.last_tick(), actions);
  if (lost.has_value()) lose({*lost, Admission::kStateIsLost}, now, actions);
}

// Fails the job if this returning rank and another follow different plans of one epoch. A summer with a different plan
// is rejected once the plan is known.
void Core::check_digest(uint32_t seat, Actions& actions) {
  const Seat& back = roster_[seat];
  if (roster_.is_summer(seat) || back.committed == 0 || outcome_.has_ended()) return;
  std::string other;
  if (reattachment_.is_under_way()) {
    const std::optional<uint32_t> contradiction = reattachment_.find_contradiction(seat);
    if (contradiction.has_value()) other = roster_.located(*contradiction);
  } else if (back.committed == plan().epoch && back.digest != proto::digest(plan())) {
    other = "the other members";
  }
  if (other.empty()) return;
  fail({absl::FailedPreconditionError(absl::StrCat(roster_.located(seat), " and ", other,
                                                   " follow different plans of epoch ", back.committed,
                                                   "; it is not known which plan is right")),
        seat},
       actions);
}

void Core::on_recalled(StreamId stream, plan::Plan plan, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = seat_of_sender(stream, now);
  if (!seat.has_value() || !reattachment_.wants_plan(plan.epoch)) return;
  const absl::Status status = reattachment_.on_plan(*seat, std::move(plan), now, actions);
  if (!status.ok()) return fail({status, *seat}, actions);
  finish_reattachment_if_complete(now, actions);
}

void Core::finish_reattachment_if_complete(absl::Duration now, Actions& actions) {
  if (outcome_.has_ended() || !reattachment_.is_complete()) return;
  const Reattachment::Result result = reattachment_.finish();
  planning_.adopt(result.plan);
  steps_.on_plan(plan(), now);
  actions.notes.push_back(
      absl::StrCat("all members have returned: plan of epoch ", plan().epoch, ", ", plan().tensors.size(), " tensors"));
  for (uint32_t seat = 0; seat < roster_.size(); ++seat) planning_.catch_up(seat, actions);
  declarations_.adopt(plan().tensors);
  for (const Reattachment::Declared& early : result.declared) {
    if (!outcome_.has_ended()) declare(early.seat, early.tensors, early.operations, now, actions);
  }
  for (uint32_t seat = 0; seat < roster_.ranks(); ++seat) {
    // A rank that sent Leave under an earlier plan stays: it now gets the plan in force, and sends Leave again.
    const bool leaves = std::exchange(roster_[seat].leaving, false) && roster_[seat].state == Seat::State::kPresent;
    if (leaves && roster_[seat].leaves_at == plan().epoch) leave_cleanly(seat, now, actions);
  }
  for (const auto& [member, report] : result.unreachable) {
    if (member >= plan().members.size()) continue;
    const uint32_t seat = roster_.seat_of_member(member);
    carry_out(judge_unreachable_summer(seat, report.epoch, report.why, roster_), now, actions);
  }
  propose_next(now, actions);
  check_declarations(now, actions);
}

// Marks a member whose stream broke as away, and returns true. Returns false, and changes nothing, if it can't return.
bool Core::mark_away_if_it_may_return(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions) {
  if (!liveness_.mark_away_if_it_may_return(seat, why, reattachment_.is_under_way(), admission_.may_members_return(),
                                            now, actions)) {
    return false;
  }
  if (!outcome_.has_ended()) reattachment_.ask_for_plan(actions);
  return true;
}

void Core::on_summer_ended(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions) {
  if (roster_[seat].takes_part()) {
    return lose({seat, std::string(why)}, now, actions);
  }
  if (roster_[seat].state != Seat::State::kEmpty) return;
  GLN_RARE("coordinator: a summer has ended that is waited for");
  actions.notes.push_back(absl::StrCat("the job does not wait for ", roster_.name(seat), " any more: ", why));
  roster_.vacate(seat, Seat::State::kVacant, now);
  finish_reattachment_if_complete(now, actions);
  begin_if_all_joined(now, actions);
}

void Core::on_ended(Role role, uint32_t index, const absl::Status& how, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> first = roster_.seat_of_index(role, index);
  if (!first.has_value() || outcome_.has_ended()) return;
  const uint32_t end = *first + (role == Role::kWorker ? options_.local_ranks : 1);
  bool known = true;
  for (uint32_t seat = *first; seat < end; ++seat) known = known && roster_[seat].state == Seat::State::kLeft;
  if (known) return;
  if (role == Role::kSummer) {
    return on_summer_ended(*first, how.ok() ? "it has ended" : how.message(), now, actions);
  }
  if (!how.ok()) return lose({*first, std::string(how.message())}, now, actions);
  const bool may_have_begun = has_begun() || admission_.may_resume();
  if (!may_have_begun) return lose({*first, "it ended before the job had begun"}, now, actions);
  for (uint32_t seat = *first; seat < end; ++seat) {
    send(roster_, seat, Goodbye{}, actions);
    roster_.vacate(seat, Seat::State::kLeft, now);
  }
  actions.notes.push_back(absl::StrCat("worker ", index, " has ended"));
  after_leaving(now, actions);
  begin_if_all_joined(now, actions);
}

void Core::on_exited(uint32_t worker, uint32_t local_rank, const RankExit& exit, Actions& actions) {
  const std::optional<uint32_t> first = roster_.seat_of_index(Role::kWorker, worker);
  if (!first.has_value() || local_rank >= options_.local_ranks) return;
  const uint32_t seat = *first + local_rank;
  announce_failure(
      outcome_.on_exited(seat, exit, has_begun(), steps_.efficiency().describe_steps(seat), liveness_.last_tick()),
      actions);
}

}  // namespace gleaner::coordinator
