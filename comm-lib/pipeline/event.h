// Event is an event of the job that every stage of a pipeline gets (stage.h): those events of a member
// (common/member/event.h) that concern stages.
#pragma once

#include <variant>

#include "common/control/coordinator_messages.h"
#include "common/member/event.h"

namespace gleaner::pipeline {

// The coordinator has admitted this rank. Before the first commit, further Welcomes with other contents may follow.
// Each makes the pipeline forget the plan that it has prepared. An error of a stage ends the session.
using control::Welcome;

// The rank is to prepare the plan, which is valid. An error of a stage refuses the plan.
using control::Prepare;

// The plan of this epoch comes into force. An error of a stage ends the session.
using control::Commit;

// The prepared plan of this epoch will never come into force. Later plans may be prepared.
using control::Withdraw;

// A worker has left the job cleanly: no further sum can be made, and every rank has the results of all sums.
using control::Ending;

// The coordinator can't be reached. CoordinatorFound follows when it has returned, or another has replaced it.
using member::CoordinatorFound;
using member::CoordinatorLost;

// The coordinator is lost, and no other will replace it.
using member::CoordinatorGone;

using Event =
    std::variant<Welcome, Prepare, Commit, Withdraw, CoordinatorLost, CoordinatorFound, CoordinatorGone, Ending>;

}  // namespace gleaner::pipeline
