// ActionExecutor carries out the actions of a Membership, in order: on the connection to the coordinator, by calls of
// Listener, for the caller that waits in leave(), and in the log. Belongs to one thread.
#pragma once

#include <string>

#include "common/base/address.h"
#include "common/base/env.h"
#include "common/member/coordinator_connection.h"
#include "common/member/introduction.h"
#include "common/member/leave_outcome.h"
#include "common/member/listener.h"
#include "common/member/membership.h"

namespace gleaner::member {

class ActionExecutor {
 public:
  // The log names `coordinator`. The objects behind all pointers must outlive this object.
  ActionExecutor(const Env& env, const Address& coordinator, Membership* membership, Introduction* introduction,
                 CoordinatorConnection* connection, Listener* listener, LeaveOutcome* leave_outcome);

  // Carries out the actions that Membership has waiting, and those that follow from them.
  void run();

 private:
  void act(const control::MemberMessage& message);
  void act(const Connect&) { connection_->open(); }
  void act(const Disconnect&) { connection_->drop(); }
  void act(const Introduce& action);
  void act(const Event& event) { listener_->on_event(event); }
  void act(const Left&) { leave_outcome_->set_left(); }
  void act(const Stays&) { leave_outcome_->set_stays(); }
  void act(const Note& action);

  const Env env_;
  const std::string address_;
  Membership* const membership_;
  Introduction* const introduction_;
  CoordinatorConnection* const connection_;
  Listener* const listener_;
  LeaveOutcome* const leave_outcome_;
};

}  // namespace gleaner::member
