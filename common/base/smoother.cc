#include "common/base/smoother.h"

#include <cmath>

namespace gleaner {

double Smoother::update(absl::Duration at, double value) {
  if (!at_.has_value()) {
    value_ = value;
  } else if (at > *at_) {
    const absl::Duration constant = value < value_ ? fall_ : rise_;
    value_ += (value - value_) * (1 - std::exp(-absl::FDivDuration(at - *at_, constant)));
  } else {
    return value_;
  }
  at_ = at;
  return value_;
}

}  // namespace gleaner
