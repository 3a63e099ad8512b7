// Runs a part of a program in a child process, so that processes which that part starts do not outlive it.
//
// The child does the work. The parent only passes on signals and waits. If the child is killed, the parent kills all
// processes that the child has started. If the parent is killed, the child receives SIGHUP and ends the work itself.
#pragma once

#include <array>
#include <csignal>
#include <functional>

#include "absl/status/statusor.h"

namespace gleaner::launcher {

// Signals that are blocked in the parent and the child, which receive them by sigwaitinfo() or signalfd().
inline constexpr std::array kGuardedSignals = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
sigset_t guarded_signals();

// Forks, so it must be called before any thread is started. Runs `body` in the child; its return value (0 to 255) is
// the child's exit status. Returns in the parent only: the child's exit status, or 128 + signal if the child was
// killed.
absl::StatusOr<int> run_guarded(const std::function<int()>& body);

// Kills and reaps every descendant of this process, until none is left. When a child dies, its own children become
// children of this process, which must be a child subreaper (run_guarded() makes the parent and the child such).
void sweep_children();

}  // namespace gleaner::launcher
