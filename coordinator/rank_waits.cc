#include "coordinator/rank_waits.h"

#include <algorithm>

namespace gleaner::coordinator {

RankWaits waits_of(std::span<const RankSteps> ranks) {
  RankWaits waits;
  if (ranks.empty()) return waits;
  const auto step_seconds = [](const RankSteps& rank) { return rank.communication_seconds / rank.steps; };
  const auto latest = std::ranges::min_element(ranks, {}, step_seconds);
  waits.latest = static_cast<size_t>(latest - ranks.begin());
  for (const RankSteps& rank : ranks) {
    const double communication = std::max(rank.steps * step_seconds(*latest), rank.bound_seconds);
    waits.seconds.push_back(std::max(0.0, rank.communication_seconds - communication));
  }
  return waits;
}

}  // namespace gleaner::coordinator
