// MessageDispatcher decodes the coordinator's messages, and passes them to Membership. It checks with Introduction that
// a Welcome comes from this job's coordinator. No I/O; belongs to one thread.
#pragma once

#include "absl/time/time.h"
#include "common/member/introduction.h"
#include "common/member/membership.h"
#include "common/proto/coordinator.pb.h"

namespace gleaner::member {

class MessageDispatcher {
 public:
  // The pointers must outlive this object.
  MessageDispatcher(Membership* membership, Introduction* introduction)
      : membership_(membership), introduction_(introduction) {}

  // Passes a message on. Ignores messages after the membership has ended, and messages of later versions. Until the
  // coordinator has proved its identity, ignores all messages but those of the handshake.
  void dispatch(const v1::CoordinatorMessage& message, absl::Duration now);

 private:
  void on_admission(const control::Admission& admission, absl::Duration now);

  Membership* const membership_;
  Introduction* const introduction_;
};

}  // namespace gleaner::member
