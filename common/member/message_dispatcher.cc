#include "common/member/message_dispatcher.h"

#include <utility>
#include <variant>

#include "common/base/overloaded.h"
#include "common/control/codec.h"

namespace gleaner::member {

void MessageDispatcher::dispatch(const v1::CoordinatorMessage& message, absl::Duration now) {
  if (membership_->is_over()) return;
  membership_->on_heard(now);
  using Kind = v1::CoordinatorMessage::KindCase;
  switch (message.kind_case()) {
    case Kind::kChallenge:
      introduction_->on_challenge(control::decode(message.challenge()));
      return membership_->on_challenged(now);
    case Kind::kWelcome:
      return on_admission(control::decode(message.welcome()), now);
    case Kind::kGoodbye:
      return membership_->on_goodbye();
    default:
      if (membership_->is_admitted()) dispatch_to_member(message, now);
  }
}

void MessageDispatcher::dispatch_to_member(const v1::CoordinatorMessage& message, absl::Duration now) {
  const absl::StatusOr<control::CoordinatorMessage> decoded = control::decode(message);
  if (!decoded.ok()) return membership_->refuse(message.prepare().plan().epoch(), decoded.status(), now);
  std::visit(Overloaded{
                 [](const control::Heartbeat&) {},
                 [&](const control::Recall&) { membership_->on_recalled(now); },
                 [&](const control::Prepare& prepare) { membership_->on_prepare(prepare.plan, now); },
                 [&](const control::Commit& commit) { membership_->on_commit(commit.epoch); },
                 [&](const control::Ending&) { listener_->on_ending(); },
                 [&](const control::Failed& failed) { membership_->on_failed(failed.status, false); },
                 [&](const control::Regroup& regroup) { membership_->on_failed(regroup.why, true); },
                 [&](const control::Newcomers& newcomers) { listener_->on_newcomers(newcomers.workers); },
                 [&](const control::Inquire& inquire) { listener_->on_inquired(inquire.tensor); },
                 [&](const control::Trace& trace) { listener_->on_trace(trace.order, trace.recording); },
                 [&](const control::Finished&) { membership_->on_finished(); },
                 [&](const control::Goodbye&) { membership_->on_goodbye(); },
             },
             *decoded);
}

void MessageDispatcher::on_admission(const control::Admission& admission, absl::Duration now) {
  if (!membership_->expects_welcome()) return;
  const absl::StatusOr<Welcome> welcome = introduction_->check(admission);
  if (!welcome.ok()) return membership_->on_attempt_failed(welcome.status(), now);
  membership_->on_welcome(*welcome, now);
}

}  // namespace gleaner::member
