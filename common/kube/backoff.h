// How long to wait before trying again: doubled each time, spread by chance so that those who failed together don't all
// come back together.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/time/time.h"
#include "common/base/env.h"

namespace gleaner::kube {

// `delay` times 0.5 to 1.5.
inline absl::Duration jittered(Random& random, absl::Duration delay) {
  std::array<uint8_t, 1> dice{128};
  random.fill(dice).IgnoreError();  // without chance the middle does
  return delay * (0.5 + dice[0] / 255.0);
}

class Backoff {
 public:
  Backoff(Random& random, absl::Duration first, absl::Duration longest)
      : random_(random), first_(first), longest_(longest) {}

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
