// Backoff computes the delays of an exponential backoff with jitter. The delay doubles with each failure. Jitter keeps
// clients that failed at the same time from retrying at the same time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/time/time.h"
#include "common/base/env.h"

namespace gleaner::kube {

// Returns `delay` times a random factor from 0.5 to 1.5.
inline absl::Duration jittered(Random& random, absl::Duration delay) {
  std::array<uint8_t, 1> dice{128};
  random.fill(dice).IgnoreError();  // on error the factor stays near 1
  return delay * (0.5 + dice[0] / 255.0);
}

class Backoff {
 public:
  Backoff(Random& random, absl::Duration first, absl::Duration longest)
      : random_(random), first_(first), longest_(longest) {}

  // Counts a failure and returns the delay before the next attempt.
  absl::Duration next() {
    const absl::Duration delay = std::min(longest_, first_ * (uint64_t{1} << std::min(failures_, 20U)));
    ++failures_;
    return jittered(random_, delay);
  }
  void reset() { failures_ = 0; }
  uint32_t failures() const { return failures_; }

 private:
  Random& random_;
  const absl::Duration first_;
  const absl::Duration longest_;
  uint32_t failures_ = 0;
};

}  // namespace gleaner::kube
