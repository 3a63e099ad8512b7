#include "common/strategy/schedule_cuts.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/collective/algorithms.h"
#include "common/collective/summary.h"

namespace gleaner::strategy {

plan::ScheduleCut cut_of(const collective::Schedule& schedule) {
  plan::ScheduleCut cut{.slices = collective::slices_per_vector(schedule)};
  if (schedule.postcondition != collective::Postcondition::kAllGather) return cut;
  cut.has_partial_sums = false;
  for (const std::vector<collective::Op>& program : schedule.programs) {
    for (const collective::Op& op : program) cut.blocks = std::max(cut.blocks, op.slice.count);
  }
  return cut;
}

absl::StatusOr<std::vector<plan::ScheduleCut>> ScheduleCuts::of(const plan::Plan& plan) {
  std::vector<plan::ScheduleCut> cuts;
  known_.resize(plan.schedules.size());
  for (size_t i = 0; i < plan.schedules.size(); ++i) {
    auto& [spec, cut] = known_[i];
    if (spec != plan.schedules[i]) {
      GLN_ASSIGN_OR_RETURN(const collective::Schedule schedule,
                           collective::make_schedule(plan.schedules[i], plan.workers));
      cut = cut_of(schedule);
      spec = plan.schedules[i];
    }
    cuts.push_back(cut);
  }
  return cuts;
}

}  // namespace gleaner::strategy
