#include "common/plan/schedule_name.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gleaner::plan {

std::string name_of(const ScheduleParameters& schedule) {
  if (!schedule.group_sizes.empty()) {
    return absl::StrCat(schedule.algorithm, " ", absl::StrJoin(schedule.group_sizes, "+"));
  }
  if (schedule.stages.empty()) return schedule.algorithm;
  return absl::StrCat(schedule.algorithm, " ", absl::StrJoin(schedule.stages, ","));
}

std::string strategy_of(const Plan& plan) {
  std::vector<std::string> names;
  for (const Tensor& tensor : plan.tensors) {
    if (tensor.accumulates) continue;
    std::string name = tensor.schedule.has_value() ? name_of(plan.schedules[*tensor.schedule]) : kSummersStrategy;
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  if (!names.empty()) return absl::StrJoin(names, ", ");
  return plan.schedules.empty() ? kSummersStrategy : name_of(plan.schedules.front());
}

}  // namespace gleaner::plan
