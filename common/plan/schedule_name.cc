#include "common/plan/schedule_name.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gleaner::plan {

std::string name_of(const ScheduleParameters& schedule) {
  if (schedule.stages.empty()) return schedule.algorithm;
  return absl::StrCat(schedule.algorithm, " ", absl::StrJoin(schedule.stages, ","));
}

std::string strategy_of(const Plan& plan) {
  return plan.schedules.empty() ? kSummersStrategy : name_of(plan.schedules.front());
}

}  // namespace gleaner::plan
