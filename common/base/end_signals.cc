#include "common/base/end_signals.h"

#include <algorithm>
#include <cerrno>
#include <thread>

#include "absl/time/clock.h"
#include "common/base/thread.h"

namespace gleaner {
namespace {

constexpr int kWorkIsDone = SIGUSR1;  // sent by during() to the thread that it started

}  // namespace

EndSignals::EndSignals() {
  sigemptyset(&signals_);
  for (const int signal : {SIGTERM, SIGINT, kWorkIsDone}) sigaddset(&signals_, signal);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
}

int EndSignals::wait(absl::Duration timeout) const {
  const absl::Time end = absl::Now() + timeout;
  while (true) {
    int signal = 0;
    if (timeout == absl::InfiniteDuration()) {
      sigwait(&signals_, &signal);
    } else {
      const timespec left = absl::ToTimespec(std::max(absl::ZeroDuration(), end - absl::Now()));
      signal = sigtimedwait(&signals_, nullptr, &left);
      if (signal < 0 && errno == EAGAIN) return 0;
    }
    if (signal == SIGTERM || signal == SIGINT) return signal;
  }
}

int EndSignals::during(absl::FunctionRef<void()> work, absl::FunctionRef<void(int)> on_signal) const {
  int taken = 0;
  std::thread waiter([&] {
    name_this_thread("gln-signals");
    int signal = 0;
    sigwait(&signals_, &signal);
    if (signal == kWorkIsDone) return;
    taken = signal;
    on_signal(signal);
  });
  work();
  pthread_kill(waiter.native_handle(), kWorkIsDone);
  waiter.join();
  return taken;
}

}  // namespace gleaner
