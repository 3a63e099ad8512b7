// Event is an event that a member's program reacts to: a message of the coordinator, or the loss or the return of the
// coordinator. common/control/coordinator_messages.h describes the messages. The comments at Event say how a Listener
// (listener.h) has to react.
#pragma once

#include <variant>

#include "absl/status/status.h"
#include "common/control/coordinator_messages.h"
#include "common/control/trace_order.h"

namespace gleaner::member {

// The coordinator can't be reached after the first commit. Sums of planned tensors go on. Tensors that are in no plan
// wait: Failed follows if no coordinator comes within plan_timeout, or immediately if none can come.
struct CoordinatorLost {};
// The coordinator is lost, and no other will replace it: it named no session, or the one that answers has begun another
// job. Follows CoordinatorLost, immediately or later.
struct CoordinatorGone {
  absl::Status why;
};
// The coordinator has returned, or another has replaced it.
struct CoordinatorFound {};

// - Welcome may come again with other contents before the first commit: the listener then forgets the plan that it has
//   prepared.
// - Prepare has a valid plan. The listener answers by Client::acknowledge(epoch) or refuse(epoch, why). The plan
//   replaces a plan that was prepared before, and may be the same plan again.
// - Failed also comes if the coordinator can't be reached before the first commit, and to a summer when the job goes on
//   without it. It is the last event.
// - Regroup comes to workers only. The worker leaves by Client::come_again(), and starts a new Client to join again. It
//   is the last event.
// - Finished also comes to a summer that is not needed any more. It is the last event.
// - Inquire is answered by Client::begun() with the number of push_pulls of the tensor that have begun on this rank.
// - Withdraw has the epoch of the plan that the listener has prepared last, unless the listener was told to forget it.
// - CountPushPulls is answered by Client::push_pulls().
// - Trace also comes while this member leaves. kSend is answered by Client::send_trace().
using Event =
    std::variant<control::Welcome, control::Prepare, control::Commit, control::Withdraw, control::Failed,
                 control::Regroup, control::Newcomers, control::Ending, control::Finished, CoordinatorLost,
                 CoordinatorGone, CoordinatorFound, control::Inquire, control::CountPushPulls, control::Trace>;

}  // namespace gleaner::member
