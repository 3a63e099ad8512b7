// Suspects of a failure: ranks that may be its true cause, because they were silent before the failure.
//
// For example, worker 2 stops, and worker 1 waits for it until worker 1's program gives up and exits. The coordinator
// sees the exit first: worker 2 is silent for less than the deadline. So it holds its decision until the suspect,
// worker 2, has sent a message or counts as lost itself. Pure.
#pragma once

#include <cstdint>
#include <set>

#include "absl/time/time.h"
#include "coordinator/roster/options.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

// Ranks send a heartbeat every second, so a rank that was silent for longer than this may have stopped.
inline constexpr absl::Duration kSilent = absl::Seconds(2);

// Returns the seats of the suspects of a failure at the time `now` that the member in the seat `culprit` seems to have
// caused: the ranks that have been silent for longer than kSilent, or than half of a shorter deadline, and for longer
// than the culprit. A rank that is away may be a suspect.
std::set<uint32_t> find_suspects(const Options& options, const Roster& roster, uint32_t culprit, absl::Duration now);

}  // namespace gleaner::coordinator
