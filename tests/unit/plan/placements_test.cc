#include "common/plan/placements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace gleaner::plan {
namespace {

// Luo Table 2.1, in Gbit/s, for 8 workers and, in NCS, 8 servers. The text does not state M/T; these values fit all 16
// entries.
TEST(Placements, Table21) {
  struct Row {
    const char* network;
    double gbits_per_step;  // M/T
    double both_ways[4];    // CC, CS, NCC, NCS
  };
  const Row rows[] = {{"ResNet 269", 8.74, {122, 31, 140, 17}},
                      {"Inception", 3.125, {44, 11, 50, 6}},
                      {"GoogleNet", 2.875, {40, 10, 46, 6}},
                      {"AlexNet", 88, {1232, 308, 1408, 176}}};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kServerPlacements.size(); ++i) {
      const LinkLoad load = load_of(kServerPlacements[i], 8, 8);
      EXPECT_EQ(std::round(2 * load.server * row.gbits_per_step), row.both_ways[i])
          << row.network << " " << name_of(kServerPlacements[i]);
    }
  }
}

// The bounds of BytePS Table 1: 2(n-1)M/(nB) colocated, max(M/B, nM/(kB)) not colocated.
TEST(Placements, AgreeWithStepTimes) {
  for (const uint32_t n : {1u, 2u, 3u, 8u, 100u}) {
    const LinkLoad colocated = load_of(ServerPlacement::kShardedColocated, n, 0);
    EXPECT_DOUBLE_EQ(colocated.worker, 2.0 * (n - 1) / n);
    EXPECT_DOUBLE_EQ(colocated.server, colocated.worker);
    for (const uint32_t k : {1u, 2u, n}) {
      const LinkLoad apart = load_of(ServerPlacement::kShardedNonColocated, n, k);
      EXPECT_DOUBLE_EQ(std::max(apart.worker, apart.server), std::max(1.0, static_cast<double>(n) / k));
    }
  }
}

TEST(Placements, OneWorkerMovesNothingToItself) {
  EXPECT_EQ(load_of(ServerPlacement::kCentralColocated, 1, 0).worker, 0);
  EXPECT_EQ(load_of(ServerPlacement::kCentralColocated, 1, 0).server, 0);
  EXPECT_EQ(load_of(ServerPlacement::kCentralNonColocated, 1, 0).worker, 1);
}

TEST(Placements, CountExtraMachines) {
  EXPECT_EQ(extra_machines(ServerPlacement::kCentralColocated, 5), 0u);
  EXPECT_EQ(extra_machines(ServerPlacement::kShardedColocated, 5), 0u);
  EXPECT_EQ(extra_machines(ServerPlacement::kCentralNonColocated, 5), 1u);
  EXPECT_EQ(extra_machines(ServerPlacement::kShardedNonColocated, 5), 5u);
}

}  // namespace
}  // namespace gleaner::plan
