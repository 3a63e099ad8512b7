#include "common/member/action_executor.h"

#include <variant>
#include <vector>

#include "common/control/codec.h"

namespace gleaner::member {

ActionExecutor::ActionExecutor(const Env& env, const Address& coordinator, Membership* membership,
                               Introduction* introduction, CoordinatorConnection* connection, Listener* listener,
                               LeaveOutcome* leave_outcome)
    : env_(env),
      address_(coordinator.to_string()),
      membership_(membership),
      introduction_(introduction),
      connection_(connection),
      listener_(listener),
      leave_outcome_(leave_outcome) {}

void ActionExecutor::run() {
  for (std::vector<Action> actions = membership_->take(); !actions.empty(); actions = membership_->take()) {
    for (const Action& action : actions) {
      std::visit([this](const auto& each) { act(each); }, action);
    }
  }
}

void ActionExecutor::act(const control::MemberMessage& message) { connection_->write(encode(message)); }

void ActionExecutor::act(const Introduce& action) {
  absl::StatusOr<control::Join> join = introduction_->answer();
  if (!join.ok()) return membership_->on_attempt_failed(join.status(), env_.clock->since_start());
  join->resume = action.resume;
  connection_->write(encode(*join));
}

void ActionExecutor::act(const Note& action) {
  switch (action.level) {
    case Note::Level::kDebug:
      return env_.log->debug(action.text, "address", address_, "reason", action.reason);
    case Note::Level::kInfo:
      return env_.log->info(action.text, "address", address_);
    case Note::Level::kWarning:
      return env_.log->warning(action.text, "address", address_, "reason", action.reason);
  }
}

}  // namespace gleaner::member
