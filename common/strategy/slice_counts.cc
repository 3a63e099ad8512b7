#include "common/strategy/slice_counts.h"

#include "common/base/status_macros.h"
#include "common/collective/algorithms.h"
#include "common/collective/summary.h"
#include "common/strategy/rank_maps.h"

namespace gleaner::strategy {

absl::StatusOr<std::vector<double>> SliceCounts::of(const plan::Plan& plan) {
  std::vector<double> counts;
  known_.resize(plan.schedules.size());
  for (size_t i = 0; i < plan.schedules.size(); ++i) {
    auto& [parameters, slices] = known_[i];
    if (parameters != plan.schedules[i]) {
      GLN_ASSIGN_OR_RETURN(const collective::Schedule schedule,
                           collective::make_schedule(request_of(plan.schedules[i], plan.workers)));
      slices = collective::slices_per_vector(schedule);
      parameters = plan.schedules[i];
    }
    counts.push_back(slices);
  }
  return counts;
}

}  // namespace gleaner::strategy
