#include "common/plan/schedule_name.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/units.h"

namespace gleaner::plan {

Bits bits_of(const collective::Spec& schedule) {
  return schedule.algorithm == kGatherAlgorithm ? Bits::kRankOrder : Bits::kSchedule;
}

const char* name_of(Bits bits) { return bits == Bits::kRankOrder ? "RankOrder" : "Schedule"; }

std::optional<Bits> parse_bits(absl::string_view name) {
  for (const Bits bits : {Bits::kRankOrder, Bits::kSchedule}) {
    if (absl::EqualsIgnoreCase(name, name_of(bits))) return bits;
  }
  return std::nullopt;
}

std::string describe_other_bits(absl::string_view bits, double seconds, double instead_of_seconds,
                                absl::string_view strategies) {
  const std::string there = format_seconds(seconds), here = format_seconds(instead_of_seconds);
  if (there == here) return absl::StrCat("class ", bits, " would take as long (", strategies, ")");
  return absl::StrCat("class ", bits, " would take ", there, " a step instead of ", here, " (", strategies, ")");
}

std::vector<StrategyShare> strategy_shares(const Plan& plan) {
  std::vector<std::string> names;  // of the schedules
  for (const collective::Spec& schedule : plan.schedules) names.push_back(collective::name_of(schedule));
  std::vector<StrategyShare> shares;
  for (const Tensor& tensor : plan.tensors) {
    if (!tensor.may_have_schedule()) continue;
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
  return plan.schedules.empty() ? kSummersStrategy : collective::name_of(plan.schedules.front());
}

}  // namespace gleaner::plan
