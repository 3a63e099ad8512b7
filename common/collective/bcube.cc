#include "common/collective/bcube.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/collective/scatter.h"
#include "common/collective/schedule_builder.h"

namespace gleaner::collective {
namespace {

// Returns k with radix^k == ranks, or -1. radix >= 2.
int rounds_of(uint32_t ranks, uint32_t radix) {
  int rounds = 0;
  uint64_t power = 1;
  for (; power < ranks; power *= radix) ++rounds;
  return power == ranks ? rounds : -1;
}

}  // namespace

uint32_t default_radix(uint32_t ranks) {
  if (ranks == 1) return 2;
  if (rounds_of(ranks, 4) >= 0) return 4;
  uint32_t radix = 2;
  while (rounds_of(ranks, radix) < 0) ++radix;  // ends at ranks
  return radix;
}

absl::StatusOr<Schedule> bcube(uint32_t ranks, uint32_t radix, OnlyRank only) {
  if (radix < 2) return absl::InvalidArgumentError(absl::StrCat("the radix is ", radix, "; give 2 or more"));
  const int rounds = rounds_of(ranks, radix);
  if (rounds < 0) {
    std::string fitting;
    for (uint32_t other = 2; other < ranks; ++other) {
      if (rounds_of(ranks, other) >= 0) absl::StrAppend(&fitting, other, " or ");
    }
    return absl::InvalidArgumentError(absl::StrCat("bcube needs a power of the radix as the number of ranks; ", ranks,
                                                   " is no power of ", radix, ": give the radix ", fitting, ranks));
  }
  ScheduleBuilder builder("bcube", {ranks}, ranks, only);
  const std::vector<uint32_t> factors(static_cast<size_t>(rounds), radix);
  std::vector<ScatterStage> stages;
  for (size_t round = 0; round < factors.size(); ++round) {
    stages.push_back({digit_groups(factors, round), ScatterKind::kDirect});
    builder.add_stage(stages.back().groups);
  }
  add_staged_all_reduce(builder, ranks, ranks, stages);
  return builder.take();
}

}  // namespace gleaner::collective
