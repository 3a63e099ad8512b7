// Event is an event of the job that every stage of a pipeline gets (stage.h). Plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>

#include "absl/status/status.h"
#include "common/member/listener.h"
#include "common/plan/plan.h"

namespace gleaner::pipeline {

// The coordinator has admitted this rank. Before the first commit, further Welcomes with other contents may follow.
// Each makes the pipeline forget the plan that it has prepared. An error of a stage ends the session.
using control::Welcome;

// The rank is to prepare `plan`, which is valid. An error of a stage refuses the plan.
struct Prepare {
  std::shared_ptr<const plan::Plan> plan;
};

// The plan of this epoch comes into force. An error of a stage ends the session.
struct Commit {
  uint32_t epoch = 0;
};

// The coordinator can't be reached. CoordinatorFound follows when it has returned, or another has replaced it.
struct CoordinatorLost {};
struct CoordinatorFound {};

// The coordinator is lost, and no other will replace it.
struct CoordinatorGone {
  absl::Status why;
};

// A worker has left the job cleanly: no further sum can be made, and every rank has the results of all sums.
struct Ending {};

using Event = std::variant<Welcome, Prepare, Commit, CoordinatorLost, CoordinatorFound, CoordinatorGone, Ending>;

}  // namespace gleaner::pipeline
