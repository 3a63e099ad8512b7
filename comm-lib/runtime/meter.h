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

// Measures the time with something in flight.
class BusyTime {
 public:
  void begin(absl::Duration now) {
    if (in_flight_++ == 0) since_ = now;
  }
  void end(absl::Duration now) {
    if (--in_flight_ == 0) ended_ += now - since_;
  }
  uint32_t in_flight() const { return in_flight_; }
  absl::Duration until(absl::Duration now) const { return ended_ + (in_flight_ > 0 ? now - since_ : absl::Duration()); }

 private:
  uint32_t in_flight_ = 0;
  absl::Duration since_;
  absl::Duration ended_;  // of periods that have ended
};

class Meter {
 public:
  static constexpr uint64_t kStepsWithoutPause = 4;

  // A broadcast takes time, but belongs to no step. A step with a broadcast in flight beside its reductions does not
  // count, since they share the network.
  enum class Kind { kReduction, kBroadcast };

  // Records that a request of this size begins.
  void begin(uint64_t bytes, absl::Duration now, Kind kind = Kind::kReduction);
  // Records that a request ends. `tensor` is a dense id. Without calls of step(), the tensor with the most requests
  // gives the number of steps.
  void end(uint32_t tensor, uint64_t bytes, bool ok, absl::Duration now, Kind kind = Kind::kReduction);
  void step();
  // Records bytes that the gradients of the step have in memory beyond those that travel.
  void save(int64_t bytes) { saved_bytes_ += bytes; }
  // Records that the plan of this epoch comes into force.
  void follow(uint32_t epoch, absl::Duration now);

  bool busy() const { return requests_.in_flight() > 0; }
  // Returns the figures so far. `last`: no report follows.
  control::Report report(absl::Duration now, bool last = false);

 private:
  struct Totals {
    uint64_t steps = 0;
    uint64_t begun_bytes = 0;
    uint64_t bytes = 0;
    uint64_t open_bytes = 0;
    absl::Duration busy;  // with a reduction in flight
    int64_t saved_bytes = 0;
  };

  uint64_t steps() const { return steps_ > 0 ? steps_ : most_; }
  // Returns whether a step has ended and no request of the next one has begun.
  bool is_between_steps() const { return begun_bytes_ <= begun_at_step_end_; }
  bool is_mark() const { return reductions_.in_flight() == 0 && is_between_steps(); }
  bool has_both_kinds() const { return reductions_.in_flight() > 0 && requests_.in_flight() > reductions_.in_flight(); }
  Totals totals(absl::Duration now) const;
  void mark(absl::Duration now);

  BusyTime requests_;  // broadcasts and reductions
  BusyTime reductions_;
  uint64_t reduced_bytes_ = 0;  // of requests
  // The following bytes are those of reductions.
  uint64_t begun_bytes_ = 0;  // also of those that fail, so it only grows
  uint64_t bytes_ = 0;
  uint64_t open_bytes_ = 0;
  int64_t saved_bytes_ = 0;
  uint64_t steps_ = 0;              // calls of step()
  uint64_t most_ = 0;               // the largest of times_
  std::vector<uint64_t> times_;     // requests done, by tensor
  uint64_t begun_at_step_end_ = 0;  // begun_bytes_ at the end of the last step, and bytes that failed since
  Totals mark_;                     // at the last mark
  bool has_plan_ = false;
  bool is_whole_ = false;      // the plan in force was in force at the last mark
  bool is_disturbed_ = false;  // since the last mark, a request failed, or both kinds were in flight at once
  MeasuredSteps measured_;
};

}  // namespace gleaner::runtime
