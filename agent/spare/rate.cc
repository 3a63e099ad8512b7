#include "agent/spare/rate.h"

namespace gleaner::spare {

std::optional<double> Rate::update(absl::Duration at, double count) {
  if (at_.has_value() && at <= *at_) return std::nullopt;
  std::optional<double> rate;
  if (at_.has_value() && count >= count_) rate = (count - count_) / absl::ToDoubleSeconds(at - *at_);
  at_ = at;
  count_ = count;
  return rate;
}

}  // namespace gleaner::spare
