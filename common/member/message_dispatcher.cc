#include "common/member/message_dispatcher.h"

#include "common/control/codec.h"

namespace gleaner::member {

void MessageDispatcher::dispatch(const v1::CoordinatorMessage& message, absl::Duration now) {
  if (membership_->is_over()) return;
  membership_->on_heard(now);
  if (message.has_challenge()) {
    introduction_->on_challenge(control::decode(message.challenge()));
    return membership_->on_challenged(now);
  }
  if (message.has_welcome()) return on_admission(control::decode(message.welcome()), now);
  // Goodbye also concerns a member whose round has ended, which is not admitted any more.
  if (!membership_->is_admitted() && !message.has_goodbye()) return;
  const absl::StatusOr<control::CoordinatorMessage> decoded = control::decode(message);
  if (decoded.ok()) return membership_->on_message(*decoded, now);
  membership_->refuse(message.prepare().plan().epoch(), decoded.status(), now);
}

void MessageDispatcher::on_admission(const control::Admission& admission, absl::Duration now) {
  if (!membership_->expects_welcome()) return;
  const absl::StatusOr<Welcome> welcome = introduction_->check(admission);
  if (!welcome.ok()) return membership_->on_attempt_failed(welcome.status(), now);
  membership_->on_welcome(*welcome, now);
}

}  // namespace gleaner::member
