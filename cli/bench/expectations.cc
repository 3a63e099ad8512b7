#include "cli/bench/expectations.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/collective/algorithms.h"
#include "common/plan/schedule_name.h"

namespace gleaner::cli {

std::vector<std::string> expected_strategies() {
  std::vector<std::string> names = {plan::kSummersStrategy};
  for (const absl::string_view algorithm : collective::algorithms()) names.emplace_back(algorithm);
  return names;
}

float number_of(const std::string& strategy) {
  if (strategy.empty()) return 1;
  const std::vector<std::string> all = expected_strategies();
  return static_cast<float>(std::ranges::find(all, strategy) - all.begin() + 2);
}

absl::Status check_expectations(std::span<const float> numbers, uint32_t local_ranks, const std::string& tensor,
                                const std::string& strategy) {
  const std::vector<std::string> all = expected_strategies();
  std::vector<std::string> others;
  for (size_t rank = 0; rank < numbers.size(); ++rank) {
    const auto number = static_cast<size_t>(numbers[rank]);
    if (number < 2 || number >= all.size() + 2 || all[number - 2] == strategy) continue;
    const std::string local = local_ranks > 1 ? absl::StrCat(" (local rank ", rank % local_ranks, ")") : "";
    others.push_back(absl::StrCat("worker ", rank / local_ranks, local, " expects ", all[number - 2]));
  }
  if (others.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the coordinator has tensor '", tensor, "' summed by ", strategy,
                                                    ", but ", absl::StrJoin(others, ", "),
                                                    "; give the coordinator and all ranks the same --strategy"));
}

}  // namespace gleaner::cli
