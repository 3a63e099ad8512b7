// Receives lists what one worker receives for a partition that a schedule sums, and finds which events an operation of
// the worker's program waits for. Pure.
//
// A worker executes its program in order (docs/schedules.md). A send leaves for its queue when the receives of earlier
// steps of the schedule have ended, and a receive begins when its slice has arrived and the receive before it has
// ended.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cli/timeline/timeline.h"

namespace gleaner::cli {

// A receive operation.
struct Receive {
  SliceKey slice;
  SliceTimes times;
  Time begun = kNever;  // when the worker began to add or copy the slice; kNever: events are missing
  // Returns whether the worker waited for the slice.
  bool has_waited() const { return begun == times.arrived; }
};

class Receives {
 public:
  Receives(const PartitionTimes& partition, uint32_t worker);

  // Returns the receives that have ended, in the order of the program.
  const std::vector<Receive>& all() const { return receives_; }
  // Returns the number of receives in steps of the schedule before `step`.
  size_t before(uint32_t step) const;
  // Returns when the first `count` receives had ended: the begin of the partition's program for 0.
  Time ended(size_t count) const { return count == 0 ? begun_ : receives_[count - 1].times.received; }

 private:
  Time begun_ = kNever;
  std::vector<Receive> receives_;
};

}  // namespace gleaner::cli
