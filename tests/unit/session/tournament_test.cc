#include "comm-lib/session/tournament.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace gleaner::session {
namespace {

TEST(Tournament, AlwaysKnowsTheMostUrgent) {
  for (const size_t players : {1, 2, 3, 7, 8, 1536}) {
    std::mt19937 random(static_cast<uint32_t>(players));
    Tournament tournament;
    tournament.reset(players);
    EXPECT_EQ(tournament.best(), Tournament::kOut);
    std::vector<Urgency> all(players, Tournament::kOut);
    for (int i = 0; i < 2000; ++i) {
      const auto player = static_cast<uint32_t>(random() % players);
      const Urgency urgency{static_cast<uint32_t>(random() % 3), static_cast<int32_t>(random() % 5) - 2, player};
      all[player] = random() % 4 == 0 ? Tournament::kOut : urgency;
      tournament.set(player, all[player]);
      const auto best = std::ranges::min_element(all);
      ASSERT_EQ(tournament.best(), *best);
      if (*best != Tournament::kOut) {
        ASSERT_EQ(tournament.best_player(), best - all.begin());
      }
    }
  }
}

}  // namespace
}  // namespace gleaner::session
