// Schedules makes the schedules that a plan names, and keeps this worker's program of each. It remembers which of them
// have summed each tensor, since slices by the earlier schedule of a tensor may arrive after a plan with another. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "comm-lib/executor/program.h"
#include "common/plan/plan.h"

namespace gleaner::executor {

class Schedules {
 public:
  // Makes the schedules that `plan` adds to those of the plan in force; equal specs share one program. They stay
  // aside until apply(). InvalidArgument names the schedule that no algorithm makes for this number of workers, or
  // whose messages about some tensor would not fit into frames.
  absl::Status prepare(const plan::Plan& plan, uint32_t worker);
  // Brings the schedules of `plan` into force. Makes them if prepare() did not. Errors are those of prepare();
  // Schedules is then as before.
  absl::Status apply(const plan::Plan& plan, uint32_t worker);

  // Returns whether a plan in force, this one or an earlier one, has said that `schedule` sums `tensor`.
  bool sums(uint32_t schedule, uint32_t tensor) const {
    return tensor < of_tensor_.size() && schedule < plan::kMaxSchedules && (of_tensor_[tensor] >> schedule & 1) != 0;
  }
  // Returns whether `schedule` sums any tensor.
  bool is_used(uint32_t schedule) const { return (used_ >> schedule & 1) != 0; }
  uint32_t size() const { return static_cast<uint32_t>(programs_.size()); }

  // Returns the program of the schedule with this index in Plan::schedules. It lives as long as this object.
  const Program& operator[](uint32_t schedule) const { return *programs_[schedule]; }

 private:
  using Programs = std::vector<std::shared_ptr<const Program>>;  // by index in Plan::schedules

  // A set of schedules: the bit i stands for index i in Plan::schedules.
  using Set = uint64_t;
  static_assert(plan::kMaxSchedules <= 64);

  Programs programs_;  // of the plan in force
  std::vector<Set> of_tensor_;
  Set used_ = 0;  // union of of_tensor_
  Programs prepared_;
  uint32_t prepared_epoch_ = 0;  // 0: nothing is prepared
};

}  // namespace gleaner::executor
