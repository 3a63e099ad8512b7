// check() verifies a schedule symbolically. Pure.
#pragma once

#include "absl/status/status.h"
#include "common/collective/schedule.h"

namespace gleaner::collective {

// Returns OK if the schedule has its postcondition: executed by its rules (schedule.h), it ends, uses up all messages,
// and leaves in each chunk with which a rank must end (postcondition.h) every contribution exactly once, whatever the
// order in which ranks run.
// InvalidArgument names the rank and the operation that breaks a rule:
// - what Messages::make() and Messages::run() check (messages.h), such as ranks that wait for each other for ever;
// - a contribution that would be added twice, or a receive-reduce of a chunk to which one rank contributes;
// - a copy of a chunk that is not complete, for example of scratch memory that nothing has been copied to;
// - a slice that may change while it is being sent: a receive into a chunk that its rank sent before, where the peer's
//   receive of that send does not happen before this receive. An operation happens before the later ones of its rank,
//   and a send before its receive;
// - a chunk that ends without a rank's contribution.
//
// Takes ranks · chunks · c / 8 bytes of memory for c contributions to each chunk (c = 64 if one rank contributes),
// 4 · ranks bytes for each message under way, and about 40 bytes for each operation; time grows with ranks · messages.
// A ring of 1,024 ranks (2 million messages) takes some seconds and 0.4 GB.
absl::Status check(const Schedule& schedule);

}  // namespace gleaner::collective
