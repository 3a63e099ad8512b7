// Judges a member's report that it can't go on with another member: which member counts as lost, or why the job fails.
// Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "coordinator/failures/deadlocks.h"
#include "coordinator/roster/findings.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

struct FaultReport {
  uint32_t reporter = 0;  // the seat of the sender
  uint32_t member = 0;    // the accused member's index in the plan of `epoch`; beyond the plan: the sender can't go on
  uint32_t epoch = 0;     // of the plan that the sender follows; 0: not known
  absl::Status why;
};

// Returns the accusation as text: "worker 1 reports: connection refused".
std::string describe(const FaultReport& report, const Roster& roster);

// Returns the code of the error that the other ranks get if a rank fails with `why`. InvalidArgument: ranks differ,
// which concerns all of them. Unavailable: any other reason.
absl::StatusCode code_for_others(const absl::Status& why);

// Returns the loss of the accused member. A rank that has left cleanly has closed its connections, so a rank that still
// needs it can't reach it: then the job fails, and the rank that left is the cause. The job fails, too, if the sender
// itself can't go on. Its reason is then the own error of all local ranks of its worker: one of them may get the
// coordinator's message before that of its local rank 0.
Finding judge(const FaultReport& report, const Roster& roster, const DeadlockDetector& deadlocks);

// Returns the loss of the summer in this seat, which a rank can't reach under the plan of `epoch`. Nothing is wrong if
// the summer joined after that plan: the report is about an earlier summer at the same place.
Finding judge_unreachable_summer(uint32_t seat, uint32_t epoch, std::string why, const Roster& roster);

}  // namespace gleaner::coordinator
