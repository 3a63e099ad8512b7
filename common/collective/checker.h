// check() verifies a schedule symbolically. Pure.
#pragma once

#include "absl/status/status.h"
#include "common/collective/schedule.h"

namespace gleaner::collective {

// Returns OK if the schedule is an all-reduce: executed by its rules (schedule.h), it ends, uses up all messages, and
// leaves in each chunk of each rank every rank's contribution exactly once. InvalidArgument names the rank and the
// operation that breaks a rule: a peer or slice out of range, steps that decrease, a send to itself, a receive whose
// slice differs from the send's, a contribution that would be added twice, a slice that changes while it is being sent,
// ranks that wait for each other for ever, a message that nobody receives, or a chunk without a contribution.
// Takes ranks² · chunks / 8 bytes of memory.
absl::Status check(const Schedule& schedule);

}  // namespace gleaner::collective
