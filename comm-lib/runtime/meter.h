// Meter measures the bytes that a rank has reduced and the time that this took, in all and for each epoch. Belongs to
// the I/O thread. The caller passes the time.
//
// Totals since the start are counters. Figures that are compared with a bound are measured between *marks*: moments at
// which a step has ended and no request is in flight. An epoch's figures reach from its first mark to its last, so a
// step that spans a change of plan counts for neither plan. A rank that always has requests in flight (CrossBarrier)
// gets a mark every kStepsWithoutPause steps instead. Requests in flight at such a mark count neither before nor after
// it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/member/client.h"

namespace gleaner::runtime {

class Meter {
 public:
  static constexpr uint64_t kStepsWithoutPause = 4;
  static constexpr size_t kEpochsKept = 8;

  // Records that a request of this size begins.
  void begin(uint64_t bytes, absl::Duration now);
  // Records that a request ends. `tensor` is a dense id. Without calls of step(), the tensor with the most requests
  // gives the number of steps.
  void end(uint32_t tensor, uint64_t bytes, bool ok, absl::Duration now);
  void step() { ++steps_; }
  // Records that the plan of this epoch comes into force.
  void follow(uint32_t epoch, absl::Duration now);

  bool busy() const { return in_flight_ > 0; }
  // Returns the figures so far. `last`: no report follows, so requests after the last step count as well.
  control::Report report(absl::Duration now, bool last = false);

 private:
  struct Totals {
    uint64_t steps = 0;
    uint64_t bytes = 0;
    uint64_t open_bytes = 0;
    absl::Duration busy;
  };

  uint64_t steps() const { return steps_ > 0 ? steps_ : most_; }
  Totals totals(absl::Duration now) const;
  void mark(absl::Duration now);

  // in_flight_ counts requests, open_bytes_ their bytes. busy_ is the time with a request in flight, except for the
  // current such period, which began at busy_since_.
  uint32_t in_flight_ = 0;
  absl::Duration busy_since_;
  absl::Duration busy_;
  uint64_t bytes_ = 0;
  uint64_t open_bytes_ = 0;
  uint64_t steps_ = 0;                    // calls of step()
  uint64_t most_ = 0;                     // the largest of times_
  std::vector<uint64_t> times_;           // requests done, by tensor
  std::deque<control::Measured> epochs_;  // the latest kEpochsKept epochs; the last one is in force
  std::optional<Totals> first_;           // first mark of the epoch in force
  uint64_t marked_steps_ = 0;             // steps at the last mark or change of plan
};

}  // namespace gleaner::runtime
