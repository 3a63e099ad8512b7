// Tests of RunningSums by itself: answers, staleness, and the effect of plan changes. engine_accumulate_test.cc tests
// the same rules through the engine.
#include "summation-service/engine/running_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "common/base/block_size.h"
#include "tests/unit/engine/sums_rig.h"

namespace gleaner::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::FrameType;

constexpr uint64_t kRunningSumBlock = block_size(8 + 2 * 8);

// Member 2 owns the partition of tensor 0. Tensor 1 does not accumulate.
class RunningSumsTest : public SumsRig<engine::RunningSums> {
 protected:
  RunningSumsTest() : SumsRig(2 * kRunningSumBlock) { sums.follow(plan(1, 2, 0)); }

  static std::shared_ptr<const plan::Plan> plan(uint32_t epoch, uint32_t owner, uint32_t moved) {
    return build_plan(
        {.epoch = epoch,
         .tensors = {{.owners = {owner}, .moved = moved, .accumulates = true, .staleness = 0}, {.owners = {2}}}});
  }
  absl::Status hand(uint32_t worker, uint64_t version, const std::vector<uint64_t>& counts) {
    Buffer answer = pool.take(8 + 2 * 8);
    std::memcpy(answer.bytes().data() + 8, counts.data(), 2 * 8);
    return hand_on(worker, version, std::move(answer));
  }
  void move_away_and_back() {
    sums.follow(plan(2, 1, 2));
    sums.follow(plan(3, 2, 3));
  }
};

TEST_F(RunningSumsTest, HoldsOwnedPartitionsThatAccumulate) {
  EXPECT_TRUE(sums.has(0));
  EXPECT_FALSE(sums.has(1));
  sums.follow(plan(2, 1, 2));
  EXPECT_FALSE(sums.has(0));
}

TEST_F(RunningSumsTest, AnswerWaitsForSlowWorkers) {
  releases.release(releases.add());
  ASSERT_TRUE(push(0, 0).ok());
  ASSERT_THAT(receivers(FrameType::kResult), ElementsAre(0)) << "no worker has an earlier step to contribute";
  EXPECT_EQ(actions.sends[0].header.op, ReduceOp::kAccumulate);
  EXPECT_EQ(actions.sends[0].header.confirmed, 1u);
  ASSERT_TRUE(push(0, 1).ok());
  EXPECT_THAT(actions.sends, IsEmpty()) << "step 0 of worker 1 is missing";
  ASSERT_TRUE(push(1, 0).ok());
  EXPECT_THAT(receivers(FrameType::kResult), ElementsAre(0, 1));
  EXPECT_EQ(sums.counters().sums, 3u);
  EXPECT_EQ(push(1, 2).code(), absl::StatusCode::kFailedPrecondition) << "step 1 is missing";
}

TEST_F(RunningSumsTest, ActionsTellContributionsAndSums) {
  ASSERT_TRUE(push(0, 0).ok());
  EXPECT_TRUE(actions.has_contributed && actions.has_summed);
  ASSERT_TRUE(push(0, 0).ok());
  EXPECT_FALSE(actions.has_contributed || actions.has_summed) << "a second copy";
}

TEST_F(RunningSumsTest, MovedPartitionLeavesNothing) {
  ASSERT_TRUE(push(0, 0).ok());
  EXPECT_EQ(sums.counters().accumulated_bytes, kRunningSumBlock);
  move_away_and_back();
  ASSERT_TRUE(push(0, 3).ok());
  EXPECT_EQ(memory.reserved(), kRunningSumBlock) << "the contribution waits";
  sums.follow(plan(4, 1, 4));
  actions.clear();
  EXPECT_EQ(sums.counters().accumulated_bytes, 0u);
  EXPECT_EQ(memory.reserved(), 0u);
  EXPECT_EQ(pool.bytes_in_use(), 0u);
}

TEST_F(RunningSumsTest, ReturningPartitionContinues) {
  move_away_and_back();
  ASSERT_TRUE(push(1, 2).ok());
  EXPECT_THAT(actions.sends, IsEmpty());
  acknowledge(0, 5);
  acknowledge(1, 4);
  ASSERT_THAT(receivers(FrameType::kFetch), ElementsAre(0));
  EXPECT_EQ(actions.sends[0].header.step, 5u);
  EXPECT_EQ(hand(0, 5, {1, 1}).code(), absl::StatusCode::kInvalidArgument) << "the counts are those of version 2";
  ASSERT_TRUE(hand(0, 5, {3, 2}).ok());
  EXPECT_THAT(receivers(FrameType::kResult), ElementsAre(1)) << "the contribution that waited";
  EXPECT_EQ(memory.reserved(), 0u);
  EXPECT_EQ(sums.counters().takeovers, 1u);
}

TEST_F(RunningSumsTest, DefersWaitingContributionWithoutMemory) {
  memory.reserve(0, 2 * kRunningSumBlock);
  move_away_and_back();
  ASSERT_TRUE(push(1, 2).ok());
  EXPECT_THAT(receivers(FrameType::kDefer), ElementsAre(1));
  EXPECT_EQ(sums.counters().deferred, 1u);
}

}  // namespace
}  // namespace gleaner::testing
