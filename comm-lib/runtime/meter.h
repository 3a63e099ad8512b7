// Counts what a rank has reduced and how long it communicated, since the start and for each epoch. Belongs to the I/O
// thread; told the time by its caller.
//
// Totals since the start are counters. What is compared with a bound is measured between marks: moments at which a step
// has ended and no push_pull is in flight. An epoch's figures reach from its first mark to its last, so a step that
// spans a change of plan counts for neither plan. A rank that always has push_pulls in flight (CrossBarrier) has a mark
// every kStepsWithoutPause steps instead; what is in flight at such a mark is counted neither before nor after it.
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

  void begin(uint64_t bytes, absl::Duration now);
  // `tensor`: a dense id; the most push_pulls of one tensor count as steps where nobody calls step().
  void end(uint32_t tensor, uint64_t bytes, bool ok, absl::Duration now);
  void step() { ++steps_; }
  // The plan of this epoch comes into force.
  void follow(uint32_t epoch, absl::Duration now);

  bool busy() const { return in_flight_ > 0; }
  // `last`: nothing follows, so what came after the last step counts as well.
  member::Report report(absl::Duration now, bool last = false);

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

  uint32_t in_flight_ = 0;
  absl::Duration busy_since_;
  absl::Duration busy_;
  uint64_t bytes_ = 0;
  uint64_t open_bytes_ = 0;
  uint64_t steps_ = 0;
  uint64_t most_ = 0;
  std::vector<uint64_t> times_;          // per tensor
  std::deque<member::Measured> epochs_;  // the latest kEpochsKept; the last is in force
  std::optional<Totals> first_;          // mark of the epoch in force
  uint64_t marked_steps_ = 0;            // of the last mark, or change of plan
};

}  // namespace gleaner::runtime
