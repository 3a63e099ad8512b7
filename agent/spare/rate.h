// A counter's growth per second.
#pragma once

#include <optional>

#include "absl/time/time.h"

namespace gleaner::spare {

class Rate {
 public:
  // `at` is monotonic time. None: this is the first reading, the counter fell (it began again: a driver or a container
  // was restarted), or no time went by.
  std::optional<double> update(absl::Duration at, double count);

 private:
  std::optional<absl::Duration> at_;
  double count_ = 0;
};

}  // namespace gleaner::spare
