// One line on how far a running job is: steps, steps per second, goodput beside its bound.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace gleaner::launcher {

// What a job came to so far.
struct JobCounts {
  uint64_t steps = 0;
  double communication_seconds = 0;  // of all these steps
  double bytes_per_step = 0;         // gradient of one worker
  double bound_seconds = 0;          // the best that a step can take now; 0: not known
  uint32_t summers = 0;
};

// Rates are those since the last line, of the steps that have been reported since.
class JobProgress {
 public:
  explicit JobProgress(std::string job) : job_(std::move(job)) {}

  // "gleaner: step 120, 1.5 steps/s, goodput 2.3 GiB/s per worker, 94 % of its bound, 2 summers"; empty before the
  // first step.
  std::string line(const JobCounts& counts, absl::Duration now);

 private:
  const std::string job_;
  uint64_t steps_ = 0;
  double communication_seconds_ = 0;
  absl::Duration at_;
  std::string rates_;  // of the last line with a new step
};

}  // namespace gleaner::launcher
