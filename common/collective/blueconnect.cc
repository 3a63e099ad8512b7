#include "common/collective/blueconnect.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "common/collective/scatter.h"
#include "common/collective/schedule_builder.h"

namespace gleaner::collective {

std::vector<uint32_t> prime_factors(uint32_t number) {
  std::vector<uint32_t> factors;
  for (uint32_t factor = 2; uint64_t{factor} * factor <= number; ++factor) {
    for (; number % factor == 0; number /= factor) factors.push_back(factor);
  }
  if (number > 1) factors.push_back(number);
  return factors;
}

absl::StatusOr<Schedule> blueconnect(const std::vector<uint32_t>& factors, OnlyRank only) {
  uint32_t ranks = 1;
  for (const uint32_t factor : factors) {
    if (factor < 2) {
      return absl::InvalidArgumentError(absl::StrCat("a stage of blueconnect has ", factor, " ranks; give 2 or more"));
    }
    ranks *= factor;
  }
  ScheduleBuilder builder("blueconnect", {ranks}, ranks, only);
  std::vector<ScatterStage> stages;
  for (size_t stage = 0; stage < factors.size(); ++stage) {
    const ScatterKind kind = std::has_single_bit(factors[stage]) ? ScatterKind::kHalving : ScatterKind::kRing;
    stages.push_back({digit_groups(factors, stage), kind});
    builder.add_stage(stages.back().groups);
  }
  add_staged_all_reduce(builder, ranks, ranks, stages);
  return builder.take();
}

}  // namespace gleaner::collective
