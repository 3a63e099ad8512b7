#include "summation-service/service/guard.h"

#include <algorithm>

namespace gleaner::service {

bool Guard::update(absl::Duration at, const Usage& usage) {
  samples_.push_back({at, usage});
  while (samples_.size() > 1 && samples_[1].at <= at - kWindow) samples_.pop_front();
  const Sample& first = samples_.front();
  if (at - first.at < kWindow) return false;
  // The kernel's counters may decrease a little.
  const double busy = std::max(0.0, usage.busy - first.usage.busy);
  const double idle = std::max(0.0, usage.idle - first.usage.idle);
  const double own = std::clamp(usage.own - first.usage.own, 0.0, busy);
  if (busy + idle <= 0) return false;
  others_share_ = (busy - own) / (busy + idle);
  idle_share_ = idle / (busy + idle);
  return others_share_ > yield_above_ && idle_share_ < kReserve;
}

}  // namespace gleaner::service
