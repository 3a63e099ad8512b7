// Schedules makes the schedules that a plan names, and keeps this worker's program of each. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "comm-lib/collective/program.h"
#include "common/plan/plan.h"

namespace gleaner::collective {

class Schedules {
 public:
  // Makes the schedules that `plan` adds to those of the plan in force; equal parameters share one program. They stay
  // aside until apply(). InvalidArgument names the schedule that no algorithm makes for this number of workers.
  absl::Status prepare(const plan::Plan& plan, uint32_t worker);
  // Brings the schedules of `plan` into force. Makes them if prepare() did not. Errors are those of prepare();
  // Schedules is then as before.
  absl::Status apply(const plan::Plan& plan, uint32_t worker);

  // Returns the program of the schedule with this index in Plan::schedules. It lives as long as this object.
  const Program& operator[](uint32_t schedule) const { return *programs_[schedule]; }

 private:
  using Programs = std::vector<std::shared_ptr<const Program>>;  // by index in Plan::schedules

  Programs programs_;  // of the plan in force
  Programs prepared_;
  uint32_t prepared_epoch_ = 0;  // 0: nothing is prepared
};

}  // namespace gleaner::collective
