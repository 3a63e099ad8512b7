// Tells when a summer has to leave its machine because others need all of its processors. Pure: counters in, decision
// out.
//
// Others need everything when, over three quarters of a second, less than 5 % of the processors' time was idle and
// others took more than a given share of it. Who takes everything while a summer of the least weight runs beside has
// nearly all of it; who takes half of it, and leaves the other half to the summer, has not.
#pragma once

#include <deque>

#include "absl/time/time.h"

namespace gleaner::service {

// Seconds that a machine's processors have spent so far, all of them together. What a hypervisor took is in none.
struct Usage {
  double busy = 0;  // for anybody
  double idle = 0;
  double own = 0;  // of `busy`, for this process
};

class Guard {
 public:
  static constexpr double kReserve = 0.05;
  static constexpr absl::Duration kWindow = absl::Milliseconds(750);

  explicit Guard(double yield_above) : yield_above_(yield_above) {}

  // Ten times a second or so; `at` only ever grows. True: leave.
  bool update(absl::Duration at, const Usage& usage);

  // Of the processors' time in the last window: what others took, and what nobody did. Before it is full: 0 and 1.
  double others_share() const { return others_share_; }
  double idle_share() const { return idle_share_; }

 private:
  struct Sample {
    absl::Duration at;
    Usage usage;
  };
  const double yield_above_;
  std::deque<Sample> samples_;  // the first at least a window old once there are such
  double others_share_ = 0, idle_share_ = 1;
};

}  // namespace gleaner::service
