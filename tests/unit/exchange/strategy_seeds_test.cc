// Tests jobs whose plans change strategies back and forth, each from a seed. To repeat a seed that fails:
// strategy_seeds_test --gtest_filter=Seeds/StrategySeeds.*/SEED
#include <gtest/gtest.h>

#include "tests/unit/exchange/changing_job.h"

namespace gleaner::testing {
namespace {

class StrategySeeds : public ::testing::TestWithParam<int> {};

TEST_P(StrategySeeds, EqualTheOracle) {
  const auto seed = static_cast<uint64_t>(GetParam());
  ChangingJob job(seed);
  EXPECT_EQ(job.run(), "") << "seed " << seed;
}
INSTANTIATE_TEST_SUITE_P(Seeds, StrategySeeds, ::testing::Range(0, 20));

TEST(StrategySeedsCover, EachCase) {
  ChangingJob::Counts sum;
  for (uint64_t seed = 100; seed < 110; ++seed) {
    ChangingJob job(seed);
    EXPECT_EQ(job.run(), "") << "seed " << seed;
    const ChangingJob::Counts& counts = job.counts();
    sum.committed += counts.committed;
    sum.withdrawn += counts.withdrawn;
    sum.refused += counts.refused;
    sum.held += counts.held;
    sum.by_owners += counts.by_owners;
    sum.by_schedules += counts.by_schedules;
  }
  EXPECT_GT(sum.committed, 0u);
  EXPECT_GT(sum.withdrawn, 0u);
  EXPECT_GT(sum.refused, 0u);
  EXPECT_GT(sum.held, 0u);
  EXPECT_GT(sum.by_owners, 0u);
  EXPECT_GT(sum.by_schedules, 0u);
}

}  // namespace
}  // namespace gleaner::testing
