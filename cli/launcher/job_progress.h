// One line on how far a running job is: steps, steps per second, goodput beside its bound.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace gleaner::launcher {

// What a job came to so far, as its coordinator's summary has it.
struct JobCounts {
  uint64_t steps = 0;
  double goodput_bytes_per_second = 0;  // of one worker, in the last minute; 0: not known
  std::string efficiency;               // then, for people: "97.2 % of its bound"; empty: not known
  uint32_t summers = 0;
};

class JobProgress {
 public:
  explicit JobProgress(std::string job) : job_(std::move(job)) {}

  // "gleaner: step 120, 1.5 steps/s, goodput 2.30 GiB/s per worker, 94.0 % of its bound, 2 summers"; empty before the
  // first step. Steps per second are those since the last line that had another step.
  std::string line(const JobCounts& counts, absl::Duration now);

 private:
  const std::string job_;
  uint64_t steps_ = 0;
  absl::Duration at_;
  std::string rate_;
};

}  // namespace gleaner::launcher
