// SIGTERM and SIGINT as values, not as interruptions: how the long-running processes are told to end.
#pragma once

#include <csignal>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace gleaner {

class EndSignals {
 public:
  // Blocks them in this thread and in all that it starts, for good: made before any other thread.
  EndSignals();

  // The signal that came; 0: none within `timeout`. One thread at a time.
  int wait(absl::Duration timeout = absl::InfiniteDuration()) const;
  // Runs `work` here; when a signal comes meanwhile, a thread of its own ("gln-signals") calls `on_signal` with it,
  // once. Returns that signal, or 0.
  int during(absl::FunctionRef<void()> work, absl::FunctionRef<void(int)> on_signal) const;

 private:
  sigset_t signals_;
};

}  // namespace gleaner
