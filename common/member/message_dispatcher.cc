#include "common/member/message_dispatcher.h"

#include <memory>
#include <utility>

#include "common/member/trace_messages.h"
#include "common/proto/plan_codec.h"

namespace gleaner::member {

void MessageDispatcher::dispatch(const v1::CoordinatorMessage& message, absl::Duration now) {
  if (membership_->is_over()) return;
  membership_->on_heard(now);
  using Kind = v1::CoordinatorMessage::KindCase;
  switch (message.kind_case()) {
    case Kind::kChallenge:
      introduction_->on_challenge(message.challenge());
      return membership_->on_challenged(now);
    case Kind::kWelcome:
      return on_welcome(message.welcome(), now);
    case Kind::kGoodbye:
      return membership_->on_goodbye();
    default:
      if (membership_->is_admitted()) dispatch_to_member(message, now);
  }
}

void MessageDispatcher::dispatch_to_member(const v1::CoordinatorMessage& message, absl::Duration now) {
  using Kind = v1::CoordinatorMessage::KindCase;
  switch (message.kind_case()) {
    case Kind::kRecall:
      return membership_->on_recalled(now);
    case Kind::kPrepare:
      return on_prepare(message.prepare().plan(), now);
    case Kind::kCommit:
      return membership_->on_commit(message.commit().epoch());
    case Kind::kInquire:
      return listener_->on_inquired(message.inquire().tensor());
    case Kind::kTrace:
      return on_trace(message.trace());
    case Kind::kFailed:
      return membership_->on_failed(proto::decode(message.failed().status()), message.failed().again());
    case Kind::kNewcomers:
      return listener_->on_newcomers(message.newcomers().workers());
    case Kind::kFinished:
      return membership_->on_finished();
    case Kind::kEnding:
      return listener_->on_ending();
    case Kind::kChallenge:
    case Kind::kWelcome:
    case Kind::kGoodbye:
    case Kind::kObserved:  // for observers
    case Kind::kHeartbeat:
    case Kind::KIND_NOT_SET:  // a message of a later version, which may be ignored
      return;
  }
}

void MessageDispatcher::on_welcome(const v1::Welcome& welcome, absl::Duration now) {
  if (!membership_->expects_welcome()) return;
  AuthenticatedWelcome admission{{}, welcome.session(), welcome.term()};
  const absl::Status status = introduction_->check(welcome, &admission.welcome);
  if (!status.ok()) return membership_->on_attempt_failed(status, now);
  membership_->on_welcome(admission, now);
}

void MessageDispatcher::on_prepare(const v1::Plan& message, absl::Duration now) {
  auto plan = proto::decode(message);
  if (!plan.ok()) return membership_->refuse(message.epoch(), plan.status(), now);
  membership_->on_prepare(std::make_shared<const plan::Plan>(*std::move(plan)), now);
}

void MessageDispatcher::on_trace(const v1::Trace& message) {
  if (const auto order = decode(message.order()); order.has_value()) listener_->on_trace(*order, message.recording());
}

}  // namespace gleaner::member
