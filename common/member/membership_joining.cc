// How a member finds its coordinator, is let in, and finds it again.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/member/membership.h"
#include "common/proto/plan_codec.h"

namespace gleaner::member {

void Membership::connect(absl::Duration now) {
  phase_ = Phase::kConnecting;
  attempted_ = now;
  is_connected_ = true;
  act(Connect{});
}

void Membership::retry_later(absl::Duration now) {
  has_asked_ = has_asked_ || phase_ != Phase::kConnecting;
  phase_ = Phase::kConnecting;
  const Pace& pace = terms_.pace;
  const absl::Duration first = has_begun() ? pace.first_pause_away : pace.first_pause;
  // Who leaves has no time to lose.
  const absl::Duration longest = leaving_ ? first : has_begun() ? pace.longest_pause_away : pace.longest_pause;
  pause_ = std::clamp(pause_ * 2, first, longest);
  retry_at_ = now + pause_ * (0.5 + dice_() / 2);
  follow_others();
}

void Membership::disconnect() {
  if (std::exchange(is_connected_, false)) act(Disconnect{});
}

// Whether it has waited for too long, and has failed.
bool Membership::is_late(absl::Duration now) {
  const std::string& where = terms_.coordinator;
  const std::string last = last_failure_.ok() ? "nobody answers" : std::string(last_failure_.message());
  if (!has_begun() && now - started_ > terms_.timeout) {
    fail(absl::UnavailableError(
        told_.has_value() ? absl::StrCat("the coordinator at ", where,
                                         " was lost before the job had begun, and did not come back: ", last)
        : phase_ == Phase::kJoining
            ? absl::StrCat("the coordinator at ", where, " has not let this member in within ",
                           absl::FormatDuration(terms_.timeout),
                           "; an elastic job takes workers in when those at work commit their state")
            : absl::StrCat("can't reach the coordinator at ", where, " within ", absl::FormatDuration(terms_.timeout),
                           ": ", last,
                           "; is it running there, and is the address right (GLEANER_COORDINATOR, --coordinator)?")));
    return true;
  }
  const absl::Duration waits_since = std::max(unplanned_since_, away_since_.value_or(now));
  if (has_begun() && !unplanned_.empty() && now - waits_since > terms_.plan_timeout) {
    fail(absl::UnavailableError(absl::StrCat(
        "tensor '", unplanned_[0].name, "' has waited for a plan for ", absl::FormatDuration(terms_.plan_timeout),
        ", and the coordinator at ", where, " is out of reach: ", last,
        "; bring it back (in Kubernetes it is part of gleaner-operator), or allow more (GLEANER_PLAN_TIMEOUT)")));
    return true;
  }
  return false;
}

void Membership::tick_connecting(absl::Duration now) {
  if (is_late(now)) return;
  if (!is_connected_) {
    if (now >= retry_at_) connect(now);
  } else if (now - std::max(attempted_, last_heard_) > terms_.pace.attempt) {
    last_failure_ =
        absl::DeadlineExceededError(absl::StrCat("no answer within ", absl::FormatDuration(terms_.pace.attempt)));
    disconnect();
    retry_later(now);
  }
}

void Membership::on_challenged(absl::Duration now) {
  if (phase_ != Phase::kConnecting) return;
  last_heard_ = now;
  phase_ = Phase::kJoining;
  Introduce introduction;
  if (!session_.empty() && (has_begun() || prepared_ != nullptr)) {
    Resume& resume = introduction.resume.emplace();
    resume.session = session_;
    resume.member = told_->member;
    resume.term = term_;
    if (prepared_ != nullptr) resume.prepared = prepared_->epoch;
    if (has_begun()) {
      resume.committed = committed_->epoch;
      resume.plan_digest = proto::digest(*committed_);
    }
  }
  act(std::move(introduction));
}

// Before the job begins it may be said again, with another place or session.
bool Membership::expects_welcome() const { return phase_ == Phase::kJoining || (is_in() && !has_begun()); }

void Membership::on_welcome(const Admission& admission, absl::Duration now) {
  if (!expects_welcome()) return;
  last_heard_ = now;
  if (has_begun() && (admission.session != session_ || admission.told.member != told_->member)) {
    return be_alone(absl::FailedPreconditionError("the coordinator has begun another job"));
  }
  come_in(admission, now);
}

void Membership::come_in(const Admission& admission, absl::Duration now) {
  phase_ = Phase::kIn;
  pause_ = absl::ZeroDuration();
  last_failure_ = absl::OkStatus();
  session_ = admission.session;
  term_ = std::max(term_, admission.term);
  for (Saying& what : std::exchange(held_back_, {})) say(std::move(what), now);
  unsaid_operations_.clear();
  if (!GLN_MUTATION("a member does not say again what it declared")) {
    say_declared(unplanned_, unplanned_operations_, now);
  }
  if (leaving_ && !GLN_MUTATION("a member does not say again that it leaves")) say_leave(now);
  if (has_begun()) {
    report_ = last_report_;
    note(Note::Level::kInfo, "the coordinator is back", "");
    away_since_ = std::nullopt;
    return act(CoordinatorFound{});
  }
  // How many summers there are is said as far as it is known by then; plans have it.
  Welcome told = admission.told;
  if (told_.has_value() && !GLN_MUTATION("a repeated welcome replaces what was prepared"))
    told.summers = told_->summers;
  if (told_ == told) return;
  prepared_ = nullptr;
  told_ = admission.told;
  if (!leaving_) act(*told_);
}

void Membership::on_closed(const absl::Status& status, absl::Duration now) {
  is_connected_ = false;
  switch (phase_) {
    case Phase::kConnecting:
    case Phase::kJoining:
      return on_attempt_failed(status, now);
    case Phase::kIn:
      if (absl::IsAborted(status) && terms_.is_summer) return fail(status);  // the job goes on without us
      return on_lost(absl::UnavailableError(status.ok() ? "it ended the stream" : status.message()), now);
    case Phase::kRegroup:
      return over(absl::OkStatus());
    case Phase::kAlone:
    case Phase::kOver:
      return;
  }
}

// Whether somebody who wants in, and was refused with this, may be let in later.
bool Membership::may_be_let_in_later(const absl::Status& status) const {
  // Where an earlier connection broke, the coordinator may have noticed only the new one yet: then we are the one who
  // has joined already.
  if (absl::IsAlreadyExists(status)) return has_asked_ && !GLN_MUTATION("a member gives up its own place");
  return status.ok() || absl::IsUnavailable(status) || absl::IsNotFound(status) || absl::IsCancelled(status) ||
         absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status);
}

void Membership::on_attempt_failed(const absl::Status& status, absl::Duration now) {
  if (phase_ == Phase::kAlone || phase_ == Phase::kOver) return;
  last_failure_ = status.ok() ? absl::UnavailableError("it ended the stream") : status;
  if (has_begun()) {
    if (absl::IsAborted(status) && terms_.is_summer) return fail(status);  // the job went on without us
    // No coordinator there will ever take this member back.
    if (absl::IsFailedPrecondition(status)) return be_alone(status);
    note(Note::Level::kDebug, "the coordinator is still out of reach", last_failure_.message());
  } else if (absl::IsUnimplemented(status)) {
    return fail(absl::FailedPreconditionError(absl::StrCat("what answers at ", terms_.coordinator,
                                                           " is no coordinator of gleaner (", status.message(), ")")));
  } else if (!may_be_let_in_later(status)) {
    const bool answered = phase_ != Phase::kConnecting || absl::IsFailedPrecondition(status);
    if (answered) return fail(status);
  }
  disconnect();
  retry_later(now);
}

void Membership::on_lost(const absl::Status& why, absl::Duration now) {
  last_failure_ = why;
  // A summer may be in force for others that have heard more.
  const bool may_be_in_force = terms_.is_summer && prepared_ != nullptr && prepared_->epoch > 1;
  if (!has_begun() && session_.empty() && !may_be_in_force) {
    return fail(absl::UnavailableError(absl::StrCat("the coordinator at ", terms_.coordinator,
                                                    " was lost before the job had begun: ", why.message())));
  }
  if (session_.empty()) return be_alone(why);
  disconnect();
  retry_later(now);
  if (!has_begun()) return;
  away_since_ = now;
  note(Note::Level::kWarning, "the coordinator is out of reach; the job goes on, and looks for it", why.message());
  act(CoordinatorLost{});
}

void Membership::be_alone(const absl::Status& why) {
  phase_ = Phase::kAlone;
  last_failure_ = why;
  disconnect();
  note(Note::Level::kWarning, "the coordinator is lost; the job goes on without it", why.message());
  if (!away_since_.has_value()) act(CoordinatorLost{});
  act(CoordinatorGone{why});
  follow_others();
  if (leaving_) over(absl::OkStatus());
  check_alone();
}

}  // namespace gleaner::member
