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
  void act(const Welcome& action) { listener_->on_welcome(action); }
  void act(const Prepare& action) { listener_->on_prepare(action.plan); }
  void act(const Commit& action) { listener_->on_commit(action.epoch); }
  void act(const Failed& action) { listener_->on_failed(action.status); }
  void act(const Regroup& action) { listener_->on_regroup(action.why); }
  void act(const Finished&) { listener_->on_finished(); }
  void act(const CoordinatorLost&) { listener_->on_coordinator_lost(); }
  void act(const CoordinatorGone& action) { listener_->on_coordinator_gone(action.why); }
  void act(const CoordinatorFound&) { listener_->on_coordinator_found(); }
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
