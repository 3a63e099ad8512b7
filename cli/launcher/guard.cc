#include "cli/launcher/guard.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/launcher/process.h"
#include "common/base/exit_timer.h"
#include "common/base/file.h"
#include "common/base/limits.h"

namespace gleaner::launcher {
namespace {

constexpr int kParentsDeath = SIGUSR1;
// Beyond GuardOptions::timeout, the time in which a child without a parent must have ended.
constexpr absl::Duration kOrphansTime = absl::Seconds(5);

// Returns this process's children from the kernel's list; none if the kernel has no such list (CONFIG_PROC_CHILDREN).
std::vector<pid_t> children() {
  std::vector<pid_t> result;
  std::ifstream file(absl::StrCat("/proc/self/task/", ::getpid(), "/children"));
  for (pid_t child = 0; file >> child;) result.push_back(child);
  return result;
}

absl::Duration now() { return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()); }

// Waits for one of the signals; returns 0 if none comes by the end of `timeout`.
int wait_for_signal(const sigset_t& signals, absl::Duration timeout) {
  if (timeout == absl::InfiniteDuration()) return std::max(0, ::sigwaitinfo(&signals, nullptr));
  const timespec left = absl::ToTimespec(std::max(absl::ZeroDuration(), timeout));
  return std::max(0, ::sigtimedwait(&signals, nullptr, &left));
}

// Passes signals on to the child until it has ended. Returns its exit status.
int watch(pid_t child, const GuardOptions& options) {
  const sigset_t signals = guarded_signals();
  absl::Duration end = absl::InfiniteDuration();
  int first_signal = 0;
  while (true) {
    const int signal = wait_for_signal(signals, end - now());
    if (signal > 0 && signal != SIGCHLD) {
      ::kill(child, signal);
      if (first_signal == 0) {
        first_signal = signal;
        end = now() + options.timeout;
      }
    }
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) {
      if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
      write_if_ready(STDERR_FILENO, absl::StrCat(options.program, ": its main process was killed by ",
                                                 describe_signal(WTERMSIG(status)), ", so the job has ended\n"));
      return 128 + WTERMSIG(status);
    }
    if (now() < end) continue;
    ::kill(-child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    write_if_ready(STDERR_FILENO,
                   absl::StrCat(options.program, ": the job had not ended ", absl::FormatDuration(options.timeout),
                                " after ", describe_signal(first_signal), ", so all its processes were killed\n"));
    return 128 + first_signal;
  }
}

absl::Duration hang_up_timeout;  // set before on_parents_death() can run

// The parent's death may find the child in any state. SIGHUP waits until the child takes it, and the timer ends a child
// that does not.
void on_parents_death(int) {
  ::kill(::getpid(), SIGHUP);
  exit_after(hang_up_timeout, 128 + SIGHUP, "");
}

// Makes the death of this process's parent end this process.
void end_with_parent(absl::Duration timeout) {
  hang_up_timeout = timeout;
  struct sigaction action {};
  action.sa_handler = on_parents_death;
  action.sa_flags = SA_RESTART;
  ::sigaction(kParentsDeath, &action, nullptr);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {kParentsDeath, SIGALRM}) sigaddset(&signals, signal);
  ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  ::prctl(PR_SET_PDEATHSIG, kParentsDeath);
}

}  // namespace

sigset_t guarded_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : kGuardedSignals) sigaddset(&signals, signal);
  return signals;
}

void sweep_children() {
  while (true) {
    std::vector<pid_t> left = children();
    // This user may not kill a program such as sudo, so there is no use in waiting for its end.
    std::erase_if(left, [](pid_t child) { return ::kill(child, SIGKILL) != 0 && errno == EPERM; });
    if (left.empty()) {
      while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
      return;
    }
    // The children of a killed child become children of this process, so the loop repeats until no child is left.
    for (const pid_t child : left) ::waitpid(child, nullptr, 0);
  }
}

absl::StatusOr<int> run_guarded(const GuardOptions& options, const std::function<int()>& body) {
  const sigset_t signals = guarded_signals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return exhausted("can't start a process", errno);
  if (child == 0) {
    ::setpgid(0, 0);  // so that the terminal sends Ctrl-C only to the parent, which passes it on
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    end_with_parent(options.timeout + kOrphansTime);
    const int status = ::getppid() == parent ? body() : 128 + SIGHUP;
    sweep_children();
    std::fflush(nullptr);
    ::_exit(status);
  }
  ::setpgid(child, child);  // the child does this too; whichever runs first makes the group
  const int status = watch(child, options);
  sweep_children();
  return status;
}

}  // namespace gleaner::launcher
