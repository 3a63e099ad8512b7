#include "common/base/end_signals.h"

#include <csignal>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/exit_timer.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"

namespace gleaner {

struct EndSignals::State {
  sigset_t signals{};
  std::string program;
  absl::Duration exit_within;

  absl::Mutex mutex;
  int taken ABSL_GUARDED_BY(mutex) = 0;                                            // the first signal; 0: none yet
  const absl::FunctionRef<void(int)>* on_signal ABSL_GUARDED_BY(mutex) = nullptr;  // of during(), not yet called
  bool is_calling ABSL_GUARDED_BY(mutex) = false;

  // Takes signals for ever, so that a thread which does not block SIGALRM is always there (exit_timer.h).
  void run() {
    while (true) {
      int signal = 0;
      sigwait(&signals, &signal);
      {
        absl::MutexLock lock(&mutex);
        if (taken != 0) continue;
        taken = signal;
      }
      if (exit_within < absl::InfiniteDuration()) {
        exit_after(exit_within, 128 + signal,
                   absl::StrCat(program, ": it had not ended ", absl::FormatDuration(exit_within), " after signal ",
                                signal, ", so it ends without waiting any longer"));
      }
      call();
    }
  }

  // Calls on_signal, if the signal has come and during() waits for it. To be called without the lock.
  void call() {
    const absl::FunctionRef<void(int)>* callback = nullptr;
    int signal = 0;
    {
      absl::MutexLock lock(&mutex);
      if (taken == 0 || on_signal == nullptr) return;
      callback = std::exchange(on_signal, nullptr);
      signal = taken;
      is_calling = true;
    }
    (*callback)(signal);
    absl::MutexLock lock(&mutex);
    is_calling = false;
  }
};

absl::StatusOr<EndSignals> EndSignals::start(absl::string_view program, absl::Duration exit_within) {
  auto state = std::make_shared<State>();
  sigemptyset(&state->signals);
  for (const int signal : {SIGTERM, SIGINT}) sigaddset(&state->signals, signal);
  pthread_sigmask(SIG_BLOCK, &state->signals, nullptr);
  state->program = std::string(program);
  state->exit_within = exit_within;
  GLN_ASSIGN_OR_RETURN(std::thread thread, start_thread("gln-signals", [state] { state->run(); }));
  thread.detach();
  return EndSignals(std::move(state));
}

int EndSignals::wait(absl::Duration timeout) const {
  State& state = *state_;
  absl::MutexLock lock(&state.mutex);
  const auto taken = [&state]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) { return state.taken != 0; };
  state.mutex.AwaitWithTimeout(absl::Condition(&taken), timeout);
  return state.taken;
}

int EndSignals::during(absl::FunctionRef<void()> work, absl::FunctionRef<void(int)> on_signal) const {
  State& state = *state_;
  {
    absl::MutexLock lock(&state.mutex);
    state.on_signal = &on_signal;
  }
  state.call();  // if the signal came earlier
  work();
  absl::MutexLock lock(&state.mutex);
  const bool was_called = state.on_signal == nullptr;
  state.on_signal = nullptr;
  const auto done = [&state]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) { return !state.is_calling; };
  state.mutex.Await(absl::Condition(&done));
  return was_called ? state.taken : 0;
}

}  // namespace gleaner
