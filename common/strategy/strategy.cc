#include "common/strategy/strategy.h"

#include <utility>

#include "common/base/overloaded.h"
#include "common/collective/algorithms.h"
#include "common/plan/schedule_name.h"

namespace gleaner::strategy {

std::vector<std::string> strategy_names() {
  std::vector<std::string> names = {plan::kSummersStrategy, kAuto};
  for (const absl::string_view algorithm : collective::algorithms()) names.emplace_back(algorithm);
  return names;
}

absl::StatusOr<Strategy> make_strategy(absl::string_view name, std::vector<uint32_t> factors, uint32_t radix) {
  const bool has_parameters = !factors.empty() || radix != 0;
  if (name == plan::kSummersStrategy) {
    if (!has_parameters) return Summers();
    return absl::InvalidArgumentError(
        "stages and a radix are options of a schedule, and the strategy is summers; leave them out, or choose the "
        "strategy that has them");
  }
  if (name == kAuto) {
    if (!has_parameters) return Auto();
    return absl::InvalidArgumentError("strategy auto chooses stages and radix itself; leave them out");
  }
  return collective::Spec{.algorithm = std::string(name), .factors = std::move(factors), .radix = radix};
}

std::string name_of(const Strategy& strategy) {
  return std::visit(Overloaded{[](const Summers&) { return std::string(plan::kSummersStrategy); },
                               [](const Auto&) { return std::string(kAuto); },
                               [](const collective::Spec& spec) { return collective::name_of(spec); }},
                    strategy);
}

}  // namespace gleaner::strategy
