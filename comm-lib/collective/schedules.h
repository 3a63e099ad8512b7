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
  // Makes the schedules that `plan` adds to those of the last plan; equal parameters share one program.
  // InvalidArgument names the schedule that no algorithm makes for this number of workers; Schedules is then as before.
  absl::Status apply(const plan::Plan& plan, uint32_t worker);

  // Returns the program of the schedule with this index in Plan::schedules. It lives as long as this object.
  const Program& operator[](uint32_t schedule) const { return *programs_[schedule]; }

 private:
  std::vector<std::shared_ptr<const Program>> programs_;  // by index in Plan::schedules
};

}  // namespace gleaner::collective
