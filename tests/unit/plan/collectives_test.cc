#include "common/plan/collectives.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gleaner::plan {
namespace {

Fleet equal(uint32_t workers, uint32_t summers) {
  return {std::vector<double>(workers, 8e9), std::vector<double>(summers, 8e9)};  // 1e9 bytes a second
}

TEST(Collectives, SummersDoNotSpeedUpReduceScatter) {
  const CollectiveBound bound = scatter_or_gather_bound(equal(4, 4), 1e9);
  EXPECT_DOUBLE_EQ(bound.seconds, 0.75);
  EXPECT_DOUBLE_EQ(bound.without_summers_seconds, 0.75);
  EXPECT_FALSE(bound.summers_can_help);
}

// A reduce-scatter and an all-gather of one size at the same time move what an all-reduce moves.
TEST(Collectives, BothAtOnceOfOneSizeTakeAsLongAsAllReduce) {
  for (uint32_t n = 1; n <= 9; ++n) {
    for (uint32_t k = 0; k <= n; ++k) {
      const CollectiveBound both = scatter_and_gather_bound(equal(n, k), 1e9, 1e9);
      const CollectiveBound all = all_reduce_bound(equal(n, k), 1e9);
      EXPECT_NEAR(both.seconds, all.seconds, 1e-12) << n << " + " << k;
      EXPECT_EQ(both.summers_can_help, n > 2) << n;
    }
  }
}

TEST(Collectives, UnequalSizesNeedFewerSummers) {
  // n = 4, R = 1, A = 3: one worker sends (3·3 + 1)/4 = 2.5; all links (3·4)/(4 + k/2).
  EXPECT_DOUBLE_EQ(scatter_and_gather_bound(equal(4, 0), 1e9, 3e9).seconds, 3);
  EXPECT_DOUBLE_EQ(scatter_and_gather_bound(equal(4, 1), 1e9, 3e9).seconds, 12.0 / 4.5);
  EXPECT_DOUBLE_EQ(scatter_and_gather_bound(equal(4, 2), 1e9, 3e9).seconds, 2.5);
}

TEST(Collectives, HybridShardingDividesSummersByShards) {
  // 4 replicas of 2 shards, 4 summers: each shard of 0.5 has 2 of them: 2·3·0.5/(4 + 2/4·2) = 0.6.
  const auto bound = hybrid_sharding_bound(equal(8, 4), 1e9, 4);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_DOUBLE_EQ(bound->seconds, 0.6);
  EXPECT_DOUBLE_EQ(bound->without_summers_seconds, 0.75);
  EXPECT_EQ(hybrid_sharding_bound(equal(8, 4), 1e9, 3).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(hybrid_sharding_bound(equal(8, 4), 1e9, 0).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Collectives, OneReplicaMovesNothing) { EXPECT_EQ(hybrid_sharding_bound(equal(8, 4), 1e9, 1)->seconds, 0); }

}  // namespace
}  // namespace gleaner::plan
