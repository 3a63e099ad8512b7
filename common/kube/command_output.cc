#include "common/kube/command_output.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/descriptor.h"

namespace gleaner::kube {
namespace {

constexpr size_t kMaxOutput = size_t{1} << 20;

std::vector<std::string> environment_with(std::map<std::string, std::string> variables) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const char* equals = std::strchr(*entry, '=');
    if (equals != nullptr) variables.emplace(std::string(*entry, equals - *entry), equals + 1);
  }
  std::vector<std::string> texts;
  texts.reserve(variables.size());
  for (const auto& [name, value] : variables) texts.push_back(absl::StrCat(name, "=", value));
  return texts;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Starts the command with its standard output at `output`. Returns 0 or an errno.
int start(std::vector<std::string>& arguments, std::vector<std::string>& environment, int output, bool has_input,
          pid_t* pid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  const absl::Cleanup destroy = [&] {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  };
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  if (!has_input) posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  // This process may block or ignore signals by which a person ends the command.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  return posix_spawnp(pid, arguments.front().c_str(), &files, &attributes, pointers(arguments).data(),
                      pointers(environment).data());
}

// Reads to the end of the pipe, so that the command never waits, and keeps the first kMaxOutput bytes and one more.
std::string read_all(int pipe) {
  std::string output;
  std::array<char, 4096> chunk;
  while (true) {
    const ssize_t got = read(pipe, chunk.data(), chunk.size());
    if (got == 0 || (got < 0 && errno != EINTR)) return output;
    if (got > 0) output.append(chunk.data(), std::min<size_t>(got, kMaxOutput + 1 - output.size()));
  }
}

}  // namespace

absl::StatusOr<std::string> command_output(std::vector<std::string> arguments,
                                           std::map<std::string, std::string> variables, bool has_input) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "can't make a pipe");
  const Descriptor output(ends[0]);
  Descriptor input(ends[1]);
  const std::string name = arguments.front();
  std::vector<std::string> environment = environment_with(std::move(variables));
  pid_t pid = 0;
  if (const int error = start(arguments, environment, input.get(), has_input, &pid); error != 0) {
    const std::string message = absl::StrCat("can't run '", name, "': ", std::strerror(error));
    return error == ENOENT ? absl::NotFoundError(message) : absl::FailedPreconditionError(message);
  }
  input.reset();
  std::string text = read_all(output.get());
  int status = 0;
  pid_t ended = -1;
  do {
    ended = waitpid(pid, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (ended != pid) {  // this process may ignore SIGCHLD
    return absl::FailedPreconditionError(absl::StrCat("the exit status of '", name, "' is unknown"));
  }
  if (WIFSIGNALED(status)) {
    return absl::FailedPreconditionError(absl::StrCat("'", name, "' was killed by signal ", WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) != 0) {
    return absl::FailedPreconditionError(absl::StrCat("'", name, "' exited with status ", WEXITSTATUS(status)));
  }
  if (text.size() > kMaxOutput) return absl::FailedPreconditionError(absl::StrCat("'", name, "' printed too much"));
  return text;
}

}  // namespace gleaner::kube
