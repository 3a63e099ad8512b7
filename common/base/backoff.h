// Exponential backoff: each pause is twice as long as the last one, from a first to a longest. Jitter keeps clients
// that failed at the same time from trying again at the same time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/time/time.h"
#include "common/base/env.h"

namespace gleaner {

// Returns the pause after `last`; zero: there was none.
inline absl::Duration next_pause(absl::Duration last, absl::Duration first, absl::Duration longest) {
  return std::min(std::max(2 * last, first), longest);
}

// Returns `delay` times a random factor from 0.5 to 1.5.
inline absl::Duration jittered(Random& random, absl::Duration delay) {
  std::array<uint8_t, 1> dice{128};
  random.fill(dice).IgnoreError();  // on error the factor stays near 1
  return delay * (0.5 + dice[0] / 255.0);
}

// The delays of a client, with jitter. Belongs to one thread.
class Backoff {
 public:
  Backoff(Random& random, absl::Duration first, absl::Duration longest)
      : random_(random), first_(first), longest_(longest) {}

  // Counts a failure and returns the delay before the next attempt.
  absl::Duration next() {
    ++failures_;
    pause_ = next_pause(pause_, first_, longest_);
    return jittered(random_, pause_);
  }
  void reset() {
    failures_ = 0;
    pause_ = absl::ZeroDuration();
  }
  uint32_t failures() const { return failures_; }

 private:
  Random& random_;
  const absl::Duration first_;
  const absl::Duration longest_;
  uint32_t failures_ = 0;
  absl::Duration pause_;  // the last one, without jitter
};

}  // namespace gleaner
