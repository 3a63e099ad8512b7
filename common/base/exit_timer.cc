#include "common/base/exit_timer.h"

#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>

#include "common/base/file.h"

namespace gleaner {
namespace {

// A signal handler reaches only data that is static. The timer is off while these are written.
char message_text[512];
std::atomic<size_t> message_size{0};
std::atomic<int> exit_status{0};
std::atomic_flag is_being_set;

void on_alarm(int) {
  if (message_size > 0) write_if_ready(STDERR_FILENO, {message_text, message_size});
  ::_exit(exit_status);
}

}  // namespace

void exit_after(absl::Duration time, int status, absl::string_view message) {
  if (is_being_set.test_and_set()) return;  // a wait here could be for ever, in a signal handler
  constexpr itimerval kOff = {};
  ::setitimer(ITIMER_REAL, &kOff, nullptr);
  const size_t size = std::min(message.size(), sizeof message_text - 1);
  std::copy_n(message.data(), size, message_text);
  message_text[size] = '\n';
  message_size = size == 0 ? 0 : size + 1;
  exit_status = status;
  struct sigaction action {};
  action.sa_handler = on_alarm;
  ::sigaction(SIGALRM, &action, nullptr);
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  ::pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
  itimerval timer = {};
  // A timer of zero would be off.
  timer.it_value = absl::ToTimeval(std::max(time, absl::Microseconds(1)));
  ::setitimer(ITIMER_REAL, &timer, nullptr);
  is_being_set.clear();
}

}  // namespace gleaner
