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

std::vector<StrategyShare> strategy_shares(const Plan& plan) {
  std::vector<std::string> names;  // of the schedules
  for (const ScheduleParameters& schedule : plan.schedules) names.push_back(name_of(schedule));
  std::vector<StrategyShare> shares;
  for (const Tensor& tensor : plan.tensors) {
    if (tensor.accumulates) continue;
    const std::string name = tensor.schedule.has_value() ? names[*tensor.schedule] : kSummersStrategy;
    auto share = std::ranges::find(shares, name, &StrategyShare::strategy);
    if (share == shares.end()) share = shares.insert(shares.end(), {name, 0, 0});
    ++share->tensors;
    share->bytes += tensor.bytes();
  }
  return shares;
}

std::string strategy_of(const Plan& plan) {
  const std::vector<StrategyShare> shares = strategy_shares(plan);
  if (!shares.empty()) {
    return absl::StrJoin(shares, ", ", [](std::string* out, const auto& share) { out->append(share.strategy); });
  }
  return plan.schedules.empty() ? kSummersStrategy : name_of(plan.schedules.front());
}

}  // namespace gleaner::plan
