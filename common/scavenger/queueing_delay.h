// QueueingDelay: how long the packets of one connection wait in queues, there and back.
//
// The queueing delay is the round-trip time minus the base delay, which is the least round-trip time of the last
// five minutes. After a change of the route to a longer one the base delay is too low, and the queueing delay too high,
// until the older round-trip times are forgotten. Source: RFC 6817 (LEDBAT), section 3.4.2. Pure; one thread.
#pragma once

#include <array>

#include "absl/time/time.h"

namespace gleaner::scavenger {

// Older queueing delays tell nothing about the present.
inline constexpr absl::Duration kFresh = absl::Milliseconds(200);

class QueueingDelay {
 public:
  static constexpr absl::Duration kHistory = absl::Minutes(5);

  // Returns the queueing delay that `round_trip`, measured at `now`, shows; 0 or more. A round trip that is not above 0
  // is no measurement and returns 0. `now` is monotonic time.
  absl::Duration update(absl::Duration now, absl::Duration round_trip);

  // Returns the base delay; infinite before the first measurement.
  absl::Duration base() const;

 private:
  static constexpr size_t kIntervals = 10;  // kHistory / kInterval
  static constexpr absl::Duration kInterval = absl::Seconds(30);

  // The least round trip in each of the last intervals, newest first; infinite: none.
  std::array<absl::Duration, kIntervals> least_ = make_empty();
  absl::Duration interval_begin_ = -absl::InfiniteDuration();

  static constexpr std::array<absl::Duration, kIntervals> make_empty() {
    std::array<absl::Duration, kIntervals> empty;
    empty.fill(absl::InfiniteDuration());
    return empty;
  }
};

}  // namespace gleaner::scavenger
