// Runs a part of a program in a child process, so that processes which that part starts do not outlive it, and so that
// a signal ends all of them even if the child hangs.
//
// The child does the work. The parent, the *guard*, has one thread: it passes on signals, waits, and then kills what is
// left. If the child has not ended some time after the first signal, the guard kills it. If the guard is killed, the
// child receives SIGHUP and ends the work itself, or, if it hangs, is ended by a timer.
#pragma once

#include <array>
#include <csignal>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gleaner::launcher {

// Signals that are blocked in the parent and the child, which receive them by sigwaitinfo() or signalfd().
inline constexpr std::array kGuardedSignals = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
sigset_t guarded_signals();

struct GuardOptions {
  std::string program;                        // begins the guard's messages: "gleaner run"
  absl::Duration timeout = absl::Seconds(5);  // from a signal until a child that has not ended is killed
};

// Forks, so it must be called before any thread is started. Runs `body` in the child; its return value (0 to 255) is
// the child's exit status. Returns in the parent only: the child's exit status, or 128 + signal if a signal killed the
// child, or if the guard killed it after that signal. ResourceExhausted: there can be no more processes; the message
// names the limit.
absl::StatusOr<int> run_guarded(const GuardOptions& options, const std::function<int()>& body);

// Kills and reaps every descendant of this process, until none is left that this user may kill. When a child dies, its
// own children become children of this process, which must be a child subreaper (run_guarded() makes the parent and the
// child such).
void sweep_children();

}  // namespace gleaner::launcher
