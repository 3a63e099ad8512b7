// An exponential average that falls fast and rises slowly: what owners take back is gone at once, what they leave is
// believed only after a while.
#pragma once

#include <optional>

#include "absl/time/time.h"

namespace gleaner::spare {

class Smoother {
 public:
  // Time constants: after that long, 63 % of a step is followed.
  Smoother(absl::Duration fall, absl::Duration rise) : fall_(fall), rise_(rise) {}

  // The first value is taken as it is. `at` is monotonic time; a time that isn't later changes nothing.
  double update(absl::Duration at, double value);

 private:
  const absl::Duration fall_, rise_;
  std::optional<absl::Duration> at_;
  double value_ = 0;
};

}  // namespace gleaner::spare
