// Rate computes the growth of a counter per second.
#pragma once

#include <optional>

#include "absl/time/time.h"

namespace gleaner::spare {

class Rate {
 public:
  // Returns the growth per second since the last reading. `at` is monotonic time. Returns nullopt for the first
  // reading, if no time has passed, and if the counter fell: then it has started again from 0, with its driver or
  // container.
  std::optional<double> update(absl::Duration at, double count);

 private:
  std::optional<absl::Duration> at_;
  double count_ = 0;
};

}  // namespace gleaner::spare
