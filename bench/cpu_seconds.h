// cpu_seconds() measures what a benchmark costs.
#pragma once

#include <sys/resource.h>

namespace gleaner {

// Returns the processor time that all threads of this process have used so far, in user and in kernel mode.
inline double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace gleaner
