#include "cli/launcher/guard.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"

namespace gleaner::launcher {
namespace {

// Returns this process's children from the kernel's list; none if the kernel has no such list (CONFIG_PROC_CHILDREN).
std::vector<pid_t> children() {
  std::vector<pid_t> result;
  std::ifstream file(absl::StrCat("/proc/self/task/", ::getpid(), "/children"));
  for (pid_t child = 0; file >> child;) result.push_back(child);
  return result;
}

// Passes signals on to the child until it has ended. Returns its exit status.
int watch(pid_t child) {
  const sigset_t signals = guarded_signals();
  while (true) {
    const int signal = ::sigwaitinfo(&signals, nullptr);
    if (signal > 0 && signal != SIGCHLD) ::kill(child, signal);
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) {
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
  }
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
    const std::vector<pid_t> left = children();
    for (const pid_t child : left) ::kill(child, SIGKILL);
    if (left.empty()) {
      while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
      return;
    }
    // The children of a killed child become children of this process, so the loop repeats until no child is left.
    for (const pid_t child : left) ::waitpid(child, nullptr, 0);
  }
}

absl::StatusOr<int> run_guarded(const std::function<int()>& body) {
  const sigset_t signals = guarded_signals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return absl::UnavailableError(absl::StrCat("can't start a process: ", std::strerror(errno)));
  if (child == 0) {
    ::setpgid(0, 0);  // so that the terminal sends Ctrl-C only to the parent, which passes it on
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::prctl(PR_SET_PDEATHSIG, SIGHUP);
    const int status = ::getppid() == parent ? body() : 128 + SIGHUP;
    sweep_children();
    std::fflush(nullptr);
    ::_exit(status);
  }
  const int status = watch(child);
  sweep_children();
  return status;
}

}  // namespace gleaner::launcher
