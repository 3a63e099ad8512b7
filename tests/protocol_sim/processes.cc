#include "tests/protocol_sim/processes.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace gleaner::sim {

size_t processors() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 1;
  return static_cast<size_t>(std::max(CPU_COUNT(&allowed), 1));
}

std::optional<std::vector<int>> run_processes(size_t count, size_t jobs, const std::function<void(size_t)>& work) {
  std::vector<int> ends(count);
  std::map<pid_t, size_t> running;
  size_t begun = 0;
  bool failed = false;
  while (!running.empty() || (begun < count && !failed)) {
    if (begun < count && !failed && running.size() < jobs) {
      std::fflush(stdout);  // or else the child would print it, too
      const pid_t child = fork();
      if (child == 0) {
        work(begun);
        std::exit(0);
      }
      failed = child < 0;
      if (!failed) running[child] = begun++;
      continue;
    }
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended < 0) return std::nullopt;
    ends[running[ended]] = status;
    running.erase(ended);
  }
  if (failed) return std::nullopt;
  return ends;
}

}  // namespace gleaner::sim
