// Smoother is an exponential average, which may follow falls and rises at different speeds. Pure.
#pragma once

#include <optional>

#include "absl/time/time.h"

namespace gleaner {

class Smoother {
 public:
  // `fall` and `rise` are time constants: after that time the average has followed 63 % of a step.
  Smoother(absl::Duration fall, absl::Duration rise) : fall_(fall), rise_(rise) {}

  // Returns the new average. The first value is taken unchanged. `at` is monotonic time; a call with a time that is not
  // later than the last one changes nothing.
  double update(absl::Duration at, double value);

 private:
  const absl::Duration fall_, rise_;
  std::optional<absl::Duration> at_;
  double value_ = 0;
};

}  // namespace gleaner
