// How a Dialogue finds its coordinator, is let in, and finds it again.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/member/credentials.h"
#include "common/member/dialogue.h"
#include "common/proto/plan_codec.h"

namespace gleaner::member {
namespace {

// Pauses between attempts, doubled from the first to the longest.
constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(1);  // until the job has begun
constexpr absl::Duration kFirstPauseAway = absl::Milliseconds(200);
constexpr absl::Duration kLongestPauseAway = absl::Seconds(5);
constexpr absl::Duration kAttempt = absl::Seconds(20);  // for an answer of any kind

// Whether somebody who wants in may be let in later.
bool may_pass(const absl::Status& status) {
  return status.ok() || absl::IsUnavailable(status) || absl::IsNotFound(status) || absl::IsCancelled(status) ||
         absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status);
}

}  // namespace

void Dialogue::connect() {
  phase_ = Phase::kConnecting;
  attempted_ = env_.clock->since_start();
  const auto credentials = channel_credentials(options_);
  if (credentials.ok()) return stream_.open(*credentials);
  last_failure_ = credentials.status();
  retry_later();
}

void Dialogue::retry_later() {
  phase_ = Phase::kConnecting;
  const absl::Duration first = has_begun() ? kFirstPauseAway : kFirstPause;
  // Who leaves has no time to lose.
  const absl::Duration longest = leaving_ ? first : has_begun() ? kLongestPauseAway : kLongestPause;
  pause_ = std::clamp(pause_ * 2, first, longest);
  // Members that lost it at the same moment shall not all come back at the same moment.
  uint8_t dice = 0;
  if (!env_.random->fill({&dice, 1}).ok()) dice = 0;
  retry_at_ = env_.clock->since_start() + pause_ * (0.5 + dice / 510.0);
}

void Dialogue::drop_connection() {
  if (!stream_.is_open()) return;
  dropped_ = true;
  stream_.cancel();
}

void Dialogue::tick_connecting(absl::Duration now) {
  const std::string where = options_.coordinator.to_string();
  const std::string last = last_failure_.ok() ? "nobody answers" : std::string(last_failure_.message());
  if (!has_begun() && now - started_ > options_.timeout) {
    return fail(absl::UnavailableError(
        told_.has_value() ? absl::StrCat("the coordinator at ", where,
                                         " was lost before the job had begun, and did not come back: ", last)
        : phase_ == Phase::kJoining
            ? absl::StrCat("the coordinator at ", where, " has not let this member in within ",
                           absl::FormatDuration(options_.timeout),
                           "; an elastic job takes workers in when those at work commit their state")
            : absl::StrCat("can't reach the coordinator at ", where, " within ", absl::FormatDuration(options_.timeout),
                           ": ", last,
                           "; is it running there, and is the address right (GLEANER_COORDINATOR, --coordinator)?")));
  }
  if (has_begun() && !unplanned_.empty() &&
      now - std::max(unplanned_since_, away_since_.value_or(now)) > options_.plan_timeout) {
    return fail(absl::UnavailableError(absl::StrCat(
        "tensor '", unplanned_[0].name, "' has waited for a plan for ", absl::FormatDuration(options_.plan_timeout),
        ", and the coordinator at ", where, " is out of reach: ", last,
        "; bring it back (in Kubernetes it is part of gleaner-operator), or allow more (GLEANER_PLAN_TIMEOUT)")));
  }
  if (stream_.is_open()) {
    if (!dropped_ && now - std::max(attempted_, last_heard_) > kAttempt) {
      last_failure_ = absl::DeadlineExceededError(absl::StrCat("no answer within ", absl::FormatDuration(kAttempt)));
      drop_connection();
      retry_later();
    }
  } else if (now >= retry_at_) {
    connect();
  }
}

void Dialogue::on_challenge(const v1::Challenge& challenge) {
  if (phase_ != Phase::kConnecting) return;
  v1::MemberMessage message;
  v1::Join* join = message.mutable_join();
  phase_ = Phase::kJoining;
  if (const absl::Status status = introduction_.answer(challenge, join); !status.ok()) return on_attempt_failed(status);
  if (!session_.empty() && (committed_ != nullptr || prepared_ != nullptr)) {
    v1::Resume* resume = join->mutable_resume();
    resume->set_session(session_);
    resume->set_member(told_->member);
    resume->set_term(term_);
    if (prepared_ != nullptr) resume->set_prepared(prepared_->epoch);
    if (committed_ != nullptr) {
      resume->set_committed(committed_->epoch);
      resume->set_plan_digest(proto::digest(*committed_));
    }
  }
  stream_.write(std::move(message));
}

void Dialogue::on_welcome(const v1::Welcome& welcome) {
  // Before the job begins it may be said again, with another place or session.
  const bool expected = phase_ == Phase::kJoining || (phase_ == Phase::kIn && !has_begun());
  if (!expected) return;
  Welcome told;
  if (const absl::Status status = introduction_.check(welcome, &told); !status.ok()) return on_attempt_failed(status);
  if (has_begun() && (welcome.session() != session_ || told.member != told_->member)) {
    return be_alone(absl::FailedPreconditionError("the coordinator has begun another job"));
  }
  come_in(welcome, told);
}

void Dialogue::come_in(const v1::Welcome& welcome, const Welcome& told) {
  phase_ = Phase::kIn;
  pause_ = absl::ZeroDuration();
  last_failure_ = absl::OkStatus();
  session_ = welcome.session();
  term_ = std::max(term_, welcome.term());
  for (v1::MemberMessage& message : std::exchange(held_back_, {})) send(std::move(message));
  send_declared(unplanned_, unplanned_operations_);
  if (leaving_) send_leave();
  if (has_begun()) {
    report_due_ = true;
    env_.log->info("the coordinator is back", "address", options_.coordinator.to_string());
    away_since_ = std::nullopt;
    listener_->on_coordinator_found();
  } else if (told_ != told) {
    prepared_ = nullptr;
    told_ = told;
    if (!leaving_) listener_->on_welcome(told);
  }
}

void Dialogue::on_closed(const absl::Status& status) {
  if (std::exchange(dropped_, false)) return;
  switch (phase_) {
    case Phase::kConnecting:
    case Phase::kJoining:
      return on_attempt_failed(status);
    case Phase::kIn:
      if (absl::IsAborted(status) && options_.role == Role::kSummer) return fail(status);  // the job goes on without us
      return on_lost(absl::UnavailableError(status.ok() ? "it ended the stream" : status.message()));
    case Phase::kRegroup:
      return over();
    case Phase::kAlone:
    case Phase::kOver:
      return;
  }
}

// By what came from there, or did not.
void Dialogue::on_attempt_failed(const absl::Status& status) {
  const std::string where = options_.coordinator.to_string();
  last_failure_ = status.ok() ? absl::UnavailableError("it ended the stream") : status;
  if (has_begun()) {
    if (absl::IsAborted(status) && options_.role == Role::kSummer) return fail(status);  // the job went on without us
    // No coordinator there will ever take this member back.
    if (absl::IsFailedPrecondition(status)) return be_alone(status);
    env_.log->debug("the coordinator is still out of reach", "address", where, "reason", last_failure_.message());
  } else if (absl::IsUnimplemented(status)) {
    return fail(absl::FailedPreconditionError(
        absl::StrCat("what answers at ", where, " is no coordinator of gleaner (", status.message(), ")")));
  } else if (!may_pass(status) && !(told_.has_value() && absl::IsAlreadyExists(status))) {
    // It may have noticed only our new connection yet: then we are the one who has joined already.
    const bool answered = phase_ != Phase::kConnecting || absl::IsFailedPrecondition(status);
    if (answered) return fail(status);
  }
  drop_connection();
  retry_later();
}

void Dialogue::on_lost(const absl::Status& why) {
  const std::string where = options_.coordinator.to_string();
  last_failure_ = why;
  if (!has_begun() && session_.empty()) {
    return fail(absl::UnavailableError(
        absl::StrCat("the coordinator at ", where, " was lost before the job had begun: ", why.message())));
  }
  if (session_.empty()) return be_alone(why);
  drop_connection();
  retry_later();
  if (!has_begun()) return;
  away_since_ = env_.clock->since_start();
  env_.log->warning("the coordinator is out of reach; the job goes on, and looks for it", "address", where, "reason",
                    why.message());
  listener_->on_coordinator_lost();
}

void Dialogue::be_alone(const absl::Status& why) {
  phase_ = Phase::kAlone;
  last_failure_ = why;
  drop_connection();
  env_.log->warning("the coordinator is lost; the job goes on without it", "address", options_.coordinator.to_string(),
                    "reason", why.message());
  if (!away_since_.has_value()) listener_->on_coordinator_lost();
  listener_->on_coordinator_gone(why);
  if (leaving_) over();
  check_alone();
}

}  // namespace gleaner::member
