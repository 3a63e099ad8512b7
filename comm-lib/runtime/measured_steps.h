// MeasuredSteps decides which steps of a rank count in the figures of each epoch, and adds them up. Pure.
//
// A step is *alike* if the step before or after it reduces as many bytes. Alike steps count. So the first step, or a
// step in which the program evaluates and sums its accuracy, changes neither the bytes nor the time of a step:
//
//   bytes     900  100  100  100  180  100  100
//   counts     -    x    x    x    -    x    x
//
// If unlike steps return often, or hold most of the bytes, they are steps as well, and all steps count from the first
// one. Gradients that are summed after several micro-batches, of which each sums its loss, are an example:
//
//   bytes       8    8    8  4000   8    8    8  4000
//   counts      x    x    x    x    x    x    x    x
//
// Bytes are those of the requests that begin in a step.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
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
  absl::Duration busy;       // time with such a request in flight
  bool is_countable = true;  // it belongs to one epoch, and nothing else disturbed it
  uint64_t last_step = 0;    // number of its last step since the start of the rank, from 1 on
  int64_t saved_bytes = 0;   // what compression and sparse communication save; control::Measured

  // Adds the figures of a later interval. So open_bytes is the sum over the ends of both.
  void add(const StepInterval& later);
};

class MeasuredSteps {
 public:
  static constexpr size_t kEpochsKept = 8;
  // Unlike steps count if there are kLeastUnlike after the first step, and if they hold more than a share of the bytes
  // beyond those of as many alike steps: of 1 / kFew, or of a half if fewer than one in kFew steps is unlike.
  static constexpr uint64_t kLeastUnlike = 2;
  static constexpr uint64_t kFew = 8;

  // Records that intervals belong to this epoch from now on.
  void follow(uint32_t epoch);
  void add(const StepInterval& interval);
  // Counts all steps if none counts yet. Called when no step follows.
  void count_rest();
  // Forgets all intervals, but not the epochs.
  void clear();

  // Returns the figures of the latest kEpochsKept epochs that have steps, in order.
  std::vector<control::Measured> figures() const;
  struct StepBytes {
    uint64_t bytes = 0;
    int64_t saved = 0;
  };
  // Returns the bytes of the latest step that counts, or the mean if all steps count. If no step counts, returns the
  // bytes of the latest one. 0: there is no step.
  StepBytes step_bytes() const { return counted_step_.bytes > 0 ? counted_step_ : latest_step_; }

 private:
  struct Pending {
    uint32_t epoch = 0;
    StepInterval interval;
  };
  struct Epoch {
    control::Measured measured;
    StepInterval unlike;    // the unlike steps that do not count, but would
    uint64_t bytes = 0;     // of all requests that ended in intervals that count
    uint64_t left_out = 0;  // of these, the bytes that belong to steps that do not count
  };
  struct Sum {
    uint64_t steps = 0;
    uint64_t bytes = 0;
    int64_t saved_bytes = 0;
    void add(const StepInterval& interval);
  };

  void count(const Pending& step);
  void count(Epoch& epoch, const StepInterval& interval);
  void leave_out(const Pending& step);
  bool are_unlike_steps_many() const;
  void count_all();
  Epoch* find(uint32_t epoch);

  std::deque<Epoch> epochs_;        // the last one is in force
  std::optional<Pending> pending_;  // the latest step, if it is unlike the one before
  bool is_first_ = true;            // no step is known to be alike or unlike yet
  bool counts_all_ = false;
  Sum counted_;
  Sum unlike_;  // without the first step
  StepBytes latest_step_;
  StepBytes counted_step_;
};

}  // namespace gleaner::runtime
