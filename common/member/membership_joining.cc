// The part of Membership that finds the coordinator, joins, and finds the coordinator again.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/member/membership.h"
#include "common/proto/plan_codec.h"

namespace gleaner::member {
namespace {

// Returns whether two Welcomes give a member the same place in the same job. The number of summers in a Welcome is
// preliminary, since plans have the final one. The session and the term belong to the coordinator, not to the place.
bool is_same_place(const Welcome& before, const Welcome& after) {
  const bool same_summers = before.summers == after.summers;
  return (same_summers || !GLN_MUTATION("a repeated welcome replaces what was prepared")) &&
         before.member == after.member && before.workers == after.workers && before.local_ranks == after.local_ranks &&
         before.elastic == after.elastic && before.secret == after.secret && before.deadline == after.deadline;
}

}  // namespace

void Membership::connect(absl::Duration now) {
  phase_ = Phase::kConnecting;
  attempts_.begin(now);
  act(Connect{});
}

void Membership::retry_later(absl::Duration now) {
  has_asked_ = has_asked_ || phase_ != Phase::kConnecting;
  phase_ = Phase::kConnecting;
  attempts_.retry_later(has_begun(), is_leaving(), now);
  follow_others();
}

void Membership::disconnect() {
  if (attempts_.end()) act(Disconnect{});
}

// If this member has waited too long to be admitted, or for a plan with a tensor, fails and returns true.
bool Membership::fail_if_late(absl::Duration now) {
  const std::string& where = terms_.coordinator;
  const std::string last = last_failure_.ok() ? "no answer" : std::string(last_failure_.message());
  if (!has_begun() && now - started_ > terms_.timeout) {
    fail(absl::UnavailableError(
        welcome_.has_value() ? absl::StrCat("the coordinator at ", where,
                                            " was lost before the job had begun, and did not return: ", last)
        : phase_ == Phase::kJoining
            ? absl::StrCat("the coordinator at ", where, " has not admitted this member within ",
                           absl::FormatDuration(terms_.timeout),
                           "; an elastic job admits workers when the present workers commit their state")
            : absl::StrCat("can't reach the coordinator at ", where, " within ", absl::FormatDuration(terms_.timeout),
                           ": ", last,
                           "; is it running there, and is the address right (GLEANER_COORDINATOR, --coordinator)?")));
    return true;
  }
  const absl::Duration waits_since = std::max(unplanned_.since(), away_since_.value_or(now));
  if (has_begun() && !unplanned_.empty() && now - waits_since > terms_.plan_timeout) {
    fail(absl::UnavailableError(absl::StrCat("tensor '", unplanned_.tensors()[0].name, "' has waited for a plan for ",
                                             absl::FormatDuration(terms_.plan_timeout), ", and the coordinator at ",
                                             where, " is out of reach: ", last,
                                             "; start it again (in Kubernetes it is part of gleaner-operator), or set "
                                             "a longer time (GLEANER_PLAN_TIMEOUT)")));
    return true;
  }
  return false;
}

void Membership::tick_connecting(absl::Duration now) {
  if (fail_if_late(now)) return;
  if (attempts_.is_due(now)) return connect(now);
  if (!attempts_.has_timed_out(last_heard_, now)) return;
  last_failure_ =
      absl::DeadlineExceededError(absl::StrCat("no answer within ", absl::FormatDuration(terms_.pace.attempt)));
  disconnect();
  retry_later(now);
}

void Membership::on_challenged(absl::Duration now) {
  if (phase_ != Phase::kConnecting) return;
  last_heard_ = now;
  phase_ = Phase::kJoining;
  Introduce introduction;
  if (!session_.empty() && (has_begun() || plans_.prepared() != nullptr)) {
    Resume& resume = introduction.resume.emplace();
    resume.session = session_;
    resume.member = welcome_->member;
    resume.term = term_;
    resume.prepared = plans_.prepared_epoch();
    resume.committed = plans_.committed_epoch();
    if (has_begun()) resume.plan_digest = proto::digest(*plans_.committed());
  }
  act(std::move(introduction));
}

// Before the job begins, Welcome may come again, with another member number or session.
bool Membership::expects_welcome() const { return phase_ == Phase::kJoining || (is_admitted() && !has_begun()); }

void Membership::on_welcome(const Welcome& welcome, absl::Duration now) {
  if (!expects_welcome()) return;
  last_heard_ = now;
  if (has_begun() && (welcome.session != session_ || welcome.member != welcome_->member)) {
    return give_up_coordinator(absl::FailedPreconditionError("the coordinator has begun another job"));
  }
  on_admitted(welcome, now);
}

void Membership::on_admitted(const Welcome& welcome, absl::Duration now) {
  phase_ = Phase::kAdmitted;
  attempts_.reset_pause();
  last_failure_ = absl::OkStatus();
  session_ = welcome.session;
  term_ = std::max(term_, welcome.term);
  for (control::MemberMessage& message : std::exchange(held_back_, {})) send(std::move(message), now);
  unplanned_.take_unsent_operations();
  if (!GLN_MUTATION("a member does not say again what it declared")) {
    send_declared(unplanned_.tensors(), unplanned_.operations(), now);
  }
  if (is_leaving() && !GLN_MUTATION("a member does not say again that it leaves")) send_leave(now);
  if (has_begun()) {
    report_ = last_report_;
    note(Note::Level::kInfo, "the coordinator is back", "");
    away_since_ = std::nullopt;
    return tell(CoordinatorFound{});
  }
  if (welcome_.has_value() && is_same_place(*welcome_, welcome)) return;
  plans_.forget_prepared();
  welcome_ = welcome;
  if (!is_leaving()) tell(*welcome_);
}

void Membership::on_closed(const absl::Status& status, absl::Duration now) {
  attempts_.end();
  switch (phase_) {
    case Phase::kConnecting:
    case Phase::kJoining:
      return on_attempt_failed(status, now);
    case Phase::kAdmitted:
      if (absl::IsAborted(status) && terms_.is_summer) return fail(status);  // the job goes on without this summer
      return on_lost(absl::UnavailableError(status.ok() ? "it ended the stream" : status.message()), now);
    case Phase::kRegroup:
      return end(absl::OkStatus());
    case Phase::kCoordinatorGone:
    case Phase::kOver:
      return;
  }
}

// Returns whether a member that was refused with this status may be admitted later.
bool Membership::may_be_admitted_later(const absl::Status& status) const {
  // If an earlier connection broke, the coordinator may not have noticed that yet. The member that has joined already
  // is then this member itself.
  if (absl::IsAlreadyExists(status)) return has_asked_ && !GLN_MUTATION("a member gives up its own place");
  return status.ok() || absl::IsUnavailable(status) || absl::IsNotFound(status) || absl::IsCancelled(status) ||
         absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status);
}

void Membership::on_attempt_failed(const absl::Status& status, absl::Duration now) {
  if (phase_ == Phase::kCoordinatorGone || phase_ == Phase::kOver) return;
  last_failure_ = status.ok() ? absl::UnavailableError("it ended the stream") : status;
  if (has_begun()) {
    if (absl::IsAborted(status) && terms_.is_summer) return fail(status);  // the job went on without this summer
    // No coordinator at this address will ever take this member back.
    if (absl::IsFailedPrecondition(status)) return give_up_coordinator(status);
    note(Note::Level::kDebug, "the coordinator is still out of reach", last_failure_.message());
  } else if (absl::IsUnimplemented(status)) {
    return fail(absl::FailedPreconditionError(absl::StrCat(
        "the server at ", terms_.coordinator, " is not a coordinator of gleaner (", status.message(), ")")));
  } else if (!may_be_admitted_later(status)) {
    const bool answered = phase_ != Phase::kConnecting || absl::IsFailedPrecondition(status);
    if (answered) return fail(status);
  }
  disconnect();
  retry_later(now);
}

void Membership::on_lost(const absl::Status& why, absl::Duration now) {
  last_failure_ = why;
  // Others may follow the plan that this summer has only prepared, and then they need the summer.
  const bool may_be_in_force = terms_.is_summer && plans_.prepared_epoch() > 1;
  if (!has_begun() && session_.empty() && !may_be_in_force) {
    return fail(absl::UnavailableError(absl::StrCat("the coordinator at ", terms_.coordinator,
                                                    " was lost before the job had begun: ", why.message())));
  }
  if (session_.empty()) return give_up_coordinator(why);
  disconnect();
  retry_later(now);
  if (!has_begun()) return;
  away_since_ = now;
  note(Note::Level::kWarning, "the coordinator is out of reach; the job goes on, and this member tries to reconnect",
       why.message());
  tell(CoordinatorLost{});
}

void Membership::give_up_coordinator(const absl::Status& why) {
  phase_ = Phase::kCoordinatorGone;
  last_failure_ = why;
  disconnect();
  note(Note::Level::kWarning, "the coordinator is lost and can't be replaced; the job goes on without a coordinator",
       why.message());
  if (!away_since_.has_value()) tell(CoordinatorLost{});
  tell(CoordinatorGone{why});
  follow_others();
  if (is_leaving()) end(absl::OkStatus());
  fail_if_unplannable();
}

}  // namespace gleaner::member
