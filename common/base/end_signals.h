// EndSignals receives SIGTERM and SIGINT, which ask a long-running process to end. Its functions return the signals; no
// signal handler runs.
#pragma once

#include <csignal>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace gleaner {

class EndSignals {
 public:
  // Blocks both signals permanently, in this thread and in all threads that it starts later. Must be constructed before
  // any other thread is started.
  EndSignals();

  // Waits for a signal and returns it; 0 if none came within `timeout`. Call it from one thread at a time.
  int wait(absl::Duration timeout = absl::InfiniteDuration()) const;
  // Runs `work` on this thread. If a signal arrives meanwhile, another thread ("gln-signals") calls `on_signal` with
  // it, once. Returns that signal, or 0.
  int during(absl::FunctionRef<void()> work, absl::FunctionRef<void(int)> on_signal) const;

 private:
  sigset_t signals_;
};

}  // namespace gleaner
