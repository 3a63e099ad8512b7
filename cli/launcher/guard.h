// Runs a program part in a child process, such that nothing it starts outlives both.
//
// The parent does nothing but pass on signals and wait; the child does the work. When the child is killed, the parent
// kills all that the child left behind; when the parent is killed, the child hears SIGHUP and ends the work itself.
#pragma once

#include <array>
#include <csignal>
#include <functional>

#include "absl/status/statusor.h"

namespace gleaner::launcher {

// Blocked in the parent and its children, which take them by sigwait or signalfd.
inline constexpr std::array kGuardedSignals = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
sigset_t guarded_signals();

// Forks, so call it before any thread is started. `body` runs in the child, whose exit status (0 to 255) it returns.
// Returns in the parent only: that status, or 128 + signal when the child was killed.
absl::StatusOr<int> run_guarded(const std::function<int()>& body);

// Kills and reaps every child of this process, and what became its child by the death of those (the process must be a
// child subreaper, as run_guarded() makes both). Ends when there is none left.
void sweep_children();

}  // namespace gleaner::launcher
