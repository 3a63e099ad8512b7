// Guard decides when a summer must leave its machine because other processes need all processors. Pure: counters in,
// decision out.
//
// Other processes need all processors when, over a window of 750 ms, less than 5 % of the processors' time was idle and
// other processes used more than a given share of that time. Example: beside a summer of the least weight, processes
// that want all processors get nearly all of their time, so the summer must leave. If processes want half of the time,
// the other half is left for the summer, which stays.
#pragma once

#include <deque>

#include "absl/time/time.h"

namespace gleaner::service {

// Time that all processors of a machine have spent so far, in seconds. No field includes time that a hypervisor took.
struct Usage {
  double busy = 0;  // used by any process
  double idle = 0;
  double own = 0;  // the part of `busy` used by this process
};

class Guard {
 public:
  // The idle share below which no processor time is left.
  static constexpr double kReserve = 0.05;
  static constexpr absl::Duration kWindow = absl::Milliseconds(750);

  // `yield_above` is the share of other processes above which the summer leaves.
  explicit Guard(double yield_above) : yield_above_(yield_above) {}

  // Adds a sample; to be called about ten times a second, with increasing `at`. Returns true if the summer must leave.
  bool update(absl::Duration at, const Usage& usage);

  // Shares of the processors' time in the last window: used by other processes, and idle. They are 0 and 1 until the
  // first window is complete.
  double others_share() const { return others_share_; }
  double idle_share() const { return idle_share_; }

 private:
  struct Sample {
    absl::Duration at;
    Usage usage;
  };
  const double yield_above_;
  std::deque<Sample> samples_;  // the first is the newest that is at least a window old, if there is one
  double others_share_ = 0, idle_share_ = 1;
};

}  // namespace gleaner::service
