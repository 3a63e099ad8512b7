// Meter measures the bytes that a rank has reduced and the time that this took, in all and for each epoch. Belongs to
// the I/O thread. The caller passes the time.
//
// Totals since the start are counters. Figures that are compared with a bound are measured between *marks*: moments at
// which a step has ended, the next one has not begun, and no request is in flight. A step that spans a change of plan
// counts for neither plan. A rank that always has requests in flight (CrossBarrier) gets a mark every
// kStepsWithoutPause steps instead. Requests in flight at such a mark count neither before nor after it. Not every step
// counts (measured_steps.h).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "comm-lib/runtime/measured_steps.h"
#include "common/member/client.h"

namespace gleaner::runtime {

class Meter {
 public:
  static constexpr uint64_t kStepsWithoutPause = 4;

  // A broadcast takes time, but belongs to no step.
  enum class Kind { kReduction, kBroadcast };

  // Records that a request of this size begins.
  void begin(uint64_t bytes, absl::Duration now, Kind kind = Kind::kReduction);
  // Records that a request ends. `tensor` is a dense id. Without calls of step(), the tensor with the most requests
  // gives the number of steps.
  void end(uint32_t tensor, uint64_t bytes, bool ok, absl::Duration now, Kind kind = Kind::kReduction);
  void step();
  // Records that the plan of this epoch comes into force.
  void follow(uint32_t epoch, absl::Duration now);

  bool busy() const { return in_flight_ > 0; }
  // Returns the figures so far. `last`: no report follows.
  control::Report report(absl::Duration now, bool last = false);

 private:
  struct Totals {
    uint64_t steps = 0;
    uint64_t begun_bytes = 0;
    uint64_t bytes = 0;
    uint64_t open_bytes = 0;
    absl::Duration busy;
  };

  uint64_t steps() const { return steps_ > 0 ? steps_ : most_; }
  // Returns whether a step has ended and no request of the next one has begun.
  bool is_between_steps() const { return begun_bytes_ <= begun_at_step_end_; }
  Totals totals(absl::Duration now) const;
  void mark(absl::Duration now);

  // in_flight_ counts requests, open_bytes_ their bytes. busy_ is the time with a request in flight, except for the
  // current such period, which began at busy_since_. Broadcasts count in in_flight_, busy_ and reduced_bytes_ only.
  uint32_t in_flight_ = 0;
  absl::Duration busy_since_;
  absl::Duration busy_;
  uint64_t reduced_bytes_ = 0;
  uint64_t begun_bytes_ = 0;
  uint64_t bytes_ = 0;
  uint64_t open_bytes_ = 0;
  uint64_t steps_ = 0;              // calls of step()
  uint64_t most_ = 0;               // the largest of times_
  std::vector<uint64_t> times_;     // requests done, by tensor
  uint64_t begun_at_step_end_ = 0;  // begun_bytes_ at the end of the last step
  Totals mark_;                     // at the last mark
  bool has_plan_ = false;
  bool is_whole_ = false;       // the plan in force was in force at the last mark
  bool has_broadcast_ = false;  // a broadcast began after the last mark
  MeasuredSteps measured_;
};

}  // namespace gleaner::runtime
