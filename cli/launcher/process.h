// Process is a child process in a process group of its own, whose output goes to pipes.
//
// Call all functions from the thread that spawned the process. That thread must live as long as the process: when the
// thread ends, the kernel kills the process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gleaner::launcher {

struct Command {
  std::vector<std::string> arguments;  // the first one is the program, which is searched in PATH
  std::vector<std::string> variables;  // NAME=VALUE, added to the environment of this process
};

// How a process ended.
struct Exit {
  int status = 0;  // exit status; 128 + signal if a signal killed the process, as in a shell
  int signal = 0;  // 0: no signal killed the process

  bool well() const { return status == 0; }
  // Returns "exited with status 3" or "was killed by signal 9 (SIGKILL)".
  std::string describe() const;
};

// Returns "signal 9 (SIGKILL)".
std::string describe_signal(int signal);

class Process {
 public:
  // Starts a process. Errors: NotFound if there is no such program, PermissionDenied if it can't be executed,
  // ResourceExhausted if the system can't start a process; the message then names the limit that is reached.
  static absl::StatusOr<Process> spawn(const Command& command);

  // The reading ends of the pipes, which are non-blocking. The caller must close them.
  int output() const { return output_; }
  int errors() const { return errors_; }

  // Sends a signal to the whole process group.
  void signal(int number) const;

  // Returns how the process ended; nothing while it runs. The process stays a zombie until reap(), so that the system
  // does not give its group's number to another.
  std::optional<Exit> exit();

  // Kills all processes of the group that still run, and waits for the process.
  void reap();

 private:
  Process(pid_t pid, int output, int errors) : pid_(pid), output_(output), errors_(errors) {}

  pid_t pid_;
  int output_;
  int errors_;
  std::optional<Exit> exit_;
};

}  // namespace gleaner::launcher
