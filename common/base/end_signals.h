// EndSignals receives SIGTERM and SIGINT, which ask a long-running process to end. Its functions return the first such
// signal. A thread ("gln-signals"), which lives as long as the process, takes the signals; no signal handler runs.
#pragma once

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gleaner {

class EndSignals {
 public:
  // Blocks both signals permanently, in this thread and in all threads that it starts later. Must be called before any
  // other thread is started, once per process. If the process has not ended `exit_within` after the first signal, it is
  // ended with status 128 + signal, and a message that begins with `program`. ResourceExhausted: see start_thread().
  static absl::StatusOr<EndSignals> start(absl::string_view program,
                                          absl::Duration exit_within = absl::InfiniteDuration());

  // Waits for the signal and returns it; 0 if none has come within `timeout`.
  int wait(absl::Duration timeout = absl::InfiniteDuration()) const;
  // Runs `work` on this thread. If the signal arrives meanwhile, another thread calls `on_signal` with it, once; if the
  // signal has arrived before, this thread does so before `work`. Returns that signal, or 0. Not reentrant.
  int during(absl::FunctionRef<void()> work, absl::FunctionRef<void(int)> on_signal) const;

 private:
  struct State;
  explicit EndSignals(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;  // shared with the thread
};

}  // namespace gleaner
