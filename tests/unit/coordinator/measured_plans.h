// Plans of a job with four workers, and the bounds of a step of kBytes bytes, for tests of the meter of efficiency. All
// links have kBits bits per second.
#pragma once

#include <vector>

#include "common/plan/model.h"
#include "common/plan/partitioner.h"

namespace gleaner::coordinator {

inline constexpr uint64_t kBytes = 100'000'000;
inline constexpr double kBits = 8e9;

inline plan::Fleet fleet_of(uint32_t summers) {
  return {std::vector<double>(4, kBits), std::vector<double>(summers, kBits)};
}

inline plan::Plan plan_of(uint32_t epoch, uint32_t summers) {
  plan::Plan plan = *plan::make_plan(fleet_of(summers), {}, {});
  plan.epoch = epoch;
  return plan;
}

inline double bound_of(uint32_t summers) { return plan::bound_seconds(fleet_of(summers), kBytes); }

}  // namespace gleaner::coordinator
