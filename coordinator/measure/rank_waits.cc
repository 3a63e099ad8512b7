#include "coordinator/measure/rank_waits.h"

#include <algorithm>

namespace gleaner::coordinator {

namespace {

constexpr double kRoundingOfSteps = 1e-6;

}  // namespace

RankWaits waits_of(std::span<const RankSteps> ranks) {
  RankWaits waits{.seconds = std::vector<double>(ranks.size())};
  if (ranks.empty()) return waits;
  const auto [fewest, most] = std::ranges::minmax(ranks, {}, &RankSteps::steps);
  if (most.steps - fewest.steps > kRoundingOfSteps) return waits;
  const auto latest = std::ranges::min_element(ranks, {}, &RankSteps::communication_seconds);
  waits.latest = static_cast<size_t>(latest - ranks.begin());
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const double seconds = ranks[rank].communication_seconds;
    const double wait = seconds - std::max(latest->communication_seconds, ranks[rank].bound_seconds);
    if (wait > kLeastWaitPart * seconds) waits.seconds[rank] = wait;
  }
  return waits;
}

}  // namespace gleaner::coordinator
