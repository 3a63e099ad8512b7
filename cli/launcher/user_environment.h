// UserEnvironment has the variables of the user's environment that `gleaner run` and its readers follow. No other file
// of this folder reads the environment.
#pragma once

#include <string>
#include <vector>

namespace gleaner::launcher {

struct UserEnvironment {
  std::string master_address, master_port;  // MASTER_ADDR and MASTER_PORT; empty: not set
  bool has_thread_count = false;            // OMP_NUM_THREADS is set
  // Folders for files that live as long as a process of this user, from best to worst: $XDG_RUNTIME_DIR/gleaner, if
  // that variable is set, /tmp/gleaner-UID, and /run/user/UID/gleaner, where processes write that have the usual
  // XDG_RUNTIME_DIR. That variable may name another user's folder, after sudo.
  std::vector<std::string> runtime_folders;
};

UserEnvironment user_environment();

}  // namespace gleaner::launcher
