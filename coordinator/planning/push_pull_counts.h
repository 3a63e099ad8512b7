// PushPullCounts predicts how many push_pulls of a tensor the workers will have begun in a moment. From a later
// push_pull on, a plan can give the tensor another strategy (plan::Tensor::schedule_from). Pure; belongs to
// AutoStrategies.
//
// AutoStrategies asks local rank 0 of one worker twice how many it has begun. For example, of one tensor:
//
//   at 0.0 s   the worker has begun 100 push_pulls
//   at 0.5 s   the worker has begun 150, which is 100 a second
//   at 0.6 s   after_next_plan() returns 211: 150, 1, and the 60 of the 0.1 s since then and of the 0.5 s (change_lead)
//              until all workers have the next plan
//
// The 1 stands for other workers. They are ahead of this one by one push_pull of a tensor at most, since none gets a
// sum before all have contributed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/roster/options.h"

namespace gleaner::coordinator {

class PushPullCounts {
 public:
  explicit PushPullCounts(const PushPullCountTimes& times = {}) : times_(times) {}

  // Forgets all counts: they were of another plan, or led to a plan.
  void reset() { *this = PushPullCounts(times_); }
  // Returns whether to ask now, and takes that as done. `epoch`: of the plan in force.
  bool ask(uint32_t epoch, absl::Duration now);
  // Takes the answer: the counts by tensor, under the plan of `epoch`.
  void on_counts(uint32_t epoch, std::vector<uint64_t> counts, absl::Duration now);
  // Returns whether the counts of the plan of `epoch`, which has this many tensors, are known and recent.
  bool are_known(uint32_t epoch, size_t tensors, absl::Duration now) const;
  // Returns the number of a push_pull of this tensor that no worker has begun when the next plan comes into force.
  // Requires are_known().
  uint64_t after_next_plan(uint32_t tensor, absl::Duration now) const;

 private:
  struct Counts {
    std::vector<uint64_t> by_tensor;
    absl::Duration at;
  };

  PushPullCountTimes times_;
  uint32_t epoch_ = 0;
  bool is_fresh(absl::Duration now) const { return second_.has_value() && now - second_->at <= times_.fresh; }

  std::optional<absl::Duration> asked_;  // and not answered
  std::optional<Counts> first_, second_;
};

}  // namespace gleaner::coordinator
