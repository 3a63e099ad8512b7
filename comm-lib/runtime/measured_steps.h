// MeasuredSteps decides which steps of a rank count in the figures of each epoch, and adds them up. Pure.
//
// A step counts once the step before or after it reduces as many bytes. So the first step, or a step in which the
// program evaluates and sums its accuracy, changes neither the bytes nor the time of a step. If kMostUnlike steps
// follow each other that are all unlike, the sizes of this program's steps differ, and all of them count:
//
//   bytes     900  100  100  100  180  100  100
//   counts     -    x    x    x    -    x    x
//
// Bytes are those of the requests that begin in a step.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/time/time.h"
#include "common/control/report.h"

namespace gleaner::runtime {

// The time between two ends of steps: of one step, or of several if requests are always in flight.
struct StepInterval {
  uint64_t steps = 0;
  uint64_t begun_bytes = 0;  // of requests that began in it
  uint64_t bytes = 0;        // of requests that ended in it
  uint64_t open_bytes = 0;   // of requests in flight at its end
  absl::Duration busy;       // time with a request in flight
  bool is_countable = true;  // it belongs to one epoch, and no broadcast was in flight in it
};

class MeasuredSteps {
 public:
  static constexpr size_t kEpochsKept = 8;
  static constexpr size_t kMostUnlike = 8;

  // Records that intervals belong to this epoch from now on.
  void follow(uint32_t epoch);
  void add(const StepInterval& interval);
  // Counts the steps that wait for one like them, if no step counts yet. Called when no step follows.
  void count_rest();
  // Forgets all intervals, but not the epochs.
  void clear();

  // Returns the figures of the latest kEpochsKept epochs that have steps, in order.
  std::vector<control::Measured> figures() const;
  // Returns the bytes of the latest step that counts; if none does, of the latest step. 0: there is no step.
  uint64_t step_bytes() const { return counted_step_bytes_ > 0 ? counted_step_bytes_ : latest_step_bytes_; }

 private:
  struct Pending {
    uint32_t epoch = 0;
    StepInterval interval;
  };
  struct Epoch {
    control::Measured measured;
    uint64_t bytes = 0;     // of all requests that ended in intervals that count
    uint64_t left_out = 0;  // of these, the bytes that belong to steps that do not count
  };

  void count(const Pending& step);
  void drop(const Pending& step);
  void drop_pending();
  Epoch* find(uint32_t epoch);

  std::deque<Epoch> epochs_;      // the last one is in force
  std::vector<Pending> pending_;  // intervals since the last one that counts
  uint64_t latest_step_bytes_ = 0;
  uint64_t counted_step_bytes_ = 0;
};

}  // namespace gleaner::runtime
