#include "cli/launcher/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/limits.h"

namespace gleaner::launcher {
namespace {

struct Pipe {
  int read = -1;
  int write = -1;

  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
  void close_read() { close(read); }
  void close_write() { close(write); }
  static void close(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
};

// Returns `variables`, followed by those variables of this process's environment that `variables` does not set.
std::vector<std::string> merged_environment(const std::vector<std::string>& variables) {
  std::vector<std::string> result = variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('=') + 1);
    bool set = false;
    for (const std::string& variable : variables) set = set || absl::StartsWith(variable, name);
    if (!set) result.push_back(text);
  }
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Turns the child into the command. It runs between fork and exec, where only async-signal-safe functions are allowed.
// If it fails, it writes errno to `failure`.
[[noreturn]] void become(pid_t parent, int input, int output, int errors, int failure, char* const* arguments,
                         char* const* environment) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == parent) {
    for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(input, STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(errors, STDERR_FILENO);
    ::execvpe(arguments[0], arguments, environment);
    const int error = errno;
    [[maybe_unused]] const ssize_t written = ::write(failure, &error, sizeof error);
  }
  ::_exit(127);
}

// Returns a name such as "SIGKILL"; empty for a signal without a name.
std::string name_of(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? "" : absl::StrCat("SIG", name);
}

}  // namespace

std::string describe_signal(int signal) {
  const std::string name = name_of(signal);
  return absl::StrCat("signal ", signal, name.empty() ? "" : absl::StrCat(" (", name, ")"));
}

std::string Exit::describe() const {
  if (signal != 0) return absl::StrCat("was killed by ", describe_signal(signal));
  const std::string name = status > 128 ? name_of(status - 128) : "";  // a shell whose command was killed
  return absl::StrCat("exited with status ", status,
                      name.empty() ? "" : absl::StrCat(", which shells return after ", name));
}

absl::StatusOr<Process> Process::spawn(const Command& command) {
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = merged_environment(command.variables);
  const std::vector<char*> argument_pointers = pointers(arguments), environment_pointers = pointers(environment);
  Pipe output, errors, failure;
  int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const bool opened = input >= 0 && output.open() && errors.open() && failure.open();
  const pid_t parent = ::getpid();
  const pid_t pid = opened ? ::fork() : -1;
  if (pid == 0) {
    become(parent, input, output.write, errors.write, failure.write, argument_pointers.data(),
           environment_pointers.data());
  }
  int error = errno;
  Pipe::close(input);
  output.close_write();
  errors.close_write();
  failure.close_write();
  if (pid > 0) {
    ::setpgid(pid, pid);  // the child does this too; whichever runs first makes the group
    const ssize_t got = ::read(failure.read, &error, sizeof error);
    failure.close_read();
    if (got <= 0) {
      for (const int end : {output.read, errors.read}) ::fcntl(end, F_SETFL, O_NONBLOCK);
      return Process(pid, output.read, errors.read);
    }
    ::waitpid(pid, nullptr, 0);
  }
  output.close_read();
  errors.close_read();
  failure.close_read();
  const absl::Status status = exhausted(absl::StrCat("can't start '", arguments[0], "'"), error);
  if (error == ENOENT) return absl::NotFoundError(status.message());
  if (error == EACCES || error == ENOEXEC) return absl::PermissionDeniedError(status.message());
  return status;
}

void Process::signal(int number) const { ::kill(-pid_, number); }

std::optional<Exit> Process::exit() {
  if (exit_.has_value()) return exit_;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
    return std::nullopt;
  }
  exit_ = info.si_code == CLD_EXITED ? Exit{info.si_status, 0} : Exit{128 + info.si_status, info.si_status};
  return exit_;
}

void Process::reap() {
  signal(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace gleaner::launcher
