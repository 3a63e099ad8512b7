// JobProgress formats the progress of a running job as one line, with steps, steps per second, goodput and efficiency.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace gleaner::launcher {

// The figures of a job so far, from its coordinator's summary.
struct JobCounts {
  uint64_t steps = 0;
  double goodput_bytes_per_second = 0;  // per worker, in the last minute; 0: unknown
  std::string efficiency;               // in the last minute, for people: "97.2 % of its bound"; empty: unknown
  uint32_t summers = 0;
};

class JobProgress {
 public:
  explicit JobProgress(std::string job) : job_(std::move(job)) {}

  // Returns "gleaner: step 120, 1.5 steps/s, goodput 2.30 GiB/s per worker, 94.0 % of its bound, 2 summers", or an
  // empty string before the first step. The rate is measured since the last call in which the step count changed.
  std::string line(const JobCounts& counts, absl::Duration now);

 private:
  const std::string job_;
  uint64_t steps_ = 0;
  absl::Duration at_;
  std::string rate_;
};

}  // namespace gleaner::launcher
