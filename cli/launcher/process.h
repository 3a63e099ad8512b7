// A child process in a process group of its own, with its output in pipes.
//
// Threads: all from the thread that spawned it, which must stay alive: the kernel kills the child with it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gleaner::launcher {

struct Command {
  std::vector<std::string> arguments;  // the first one is looked up in PATH
  std::vector<std::string> variables;  // NAME=VALUE, in addition to our own environment
};

// How a process ended.
struct Exit {
  int status = 0;  // as a shell has it: 128 + signal when a signal killed it
  int signal = 0;  // 0: it exited by itself

  bool well() const { return status == 0; }
  // "exited with status 3", "was killed by signal 9 (SIGKILL)".
  std::string describe() const;
};

// "signal 9 (SIGKILL)".
std::string describe_signal(int signal);

class Process {
 public:
  // NotFound: no such program; PermissionDenied: it can't be executed.
  static absl::StatusOr<Process> spawn(const Command& command);

  int output() const { return output_; }  // non-blocking; the reader's from here on, to be closed by it
  int errors() const { return errors_; }

  // To the whole group.
  void signal(int number) const;

  // How it ended, once it has. It stays a zombie until reap(), so that its group can't be mistaken for another.
  std::optional<Exit> exit();

  // Once it has ended: kills what is left of its group.
  void reap();

 private:
  Process(pid_t pid, int output, int errors) : pid_(pid), output_(output), errors_(errors) {}

  pid_t pid_;
  int output_;
  int errors_;
  std::optional<Exit> exit_;
};

}  // namespace gleaner::launcher
