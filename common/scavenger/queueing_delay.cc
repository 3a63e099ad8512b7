#include "common/scavenger/queueing_delay.h"

#include <algorithm>

namespace gleaner::scavenger {

absl::Duration QueueingDelay::update(absl::Duration now, absl::Duration round_trip) {
  if (round_trip <= absl::ZeroDuration()) return absl::ZeroDuration();
  if (now - interval_begin_ >= kHistory) {
    least_ = make_empty();
    interval_begin_ = now;
  }
  while (now - interval_begin_ >= kInterval) {
    std::shift_right(least_.begin(), least_.end(), 1);
    least_.front() = absl::InfiniteDuration();
    interval_begin_ += kInterval;
  }
  least_.front() = std::min(least_.front(), round_trip);
  return round_trip - base();
}

absl::Duration QueueingDelay::base() const { return *std::min_element(least_.begin(), least_.end()); }

}  // namespace gleaner::scavenger
