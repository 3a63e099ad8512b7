// Tests of Sums by itself: steps, acknowledgements, and the effect of plan changes. engine_*_test.cc test the same
// rules through the engine.
#include "summation-service/engine/sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/engine/blocks.h"
#include "tests/unit/engine/sums_rig.h"

namespace gleaner::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::FrameType;

// Member 2 owns partition 0.
class SumsTest : public SumsRig<engine::Sums> {
 protected:
  SumsTest() : SumsRig(0) { sums.follow(build_plan({.tensors = {{.owners = {2, 1}}}})); }

  absl::Status hand(uint32_t worker, uint64_t step) { return hand_on(worker, step, pool.take(8)); }
  // Lets the partition move to member 1 and back.
  void move_away_and_back() {
    sums.follow(build_plan({.epoch = 2, .tensors = {{.owners = {1, 1}, .moved = 2}}}));
    sums.follow(build_plan({.epoch = 3, .tensors = {{.owners = {2, 1}, .moved = 3}}}));
  }
};

TEST_F(SumsTest, LastContributionAnswersAllWorkers) {
  ASSERT_TRUE(push(0, 0).ok());
  EXPECT_THAT(actions.sends, IsEmpty());
  ASSERT_TRUE(push(1, 0).ok());
  EXPECT_THAT(receivers(FrameType::kResult), ElementsAre(0, 1));
  EXPECT_EQ(actions.sends[0].header.job, 7u);
  EXPECT_EQ(actions.sends[0].header.sender, 2u);
  EXPECT_EQ(actions.sends[0].header.payload_crc, wire::crc32c(actions.sends[0].payload.bytes()));
  EXPECT_EQ(sums.counters().sums, 1u);
}

// Workers 0 and 2 of three are the group of a partition that member 3 owns.
class SumsOfGroup : public ::testing::Test {
 protected:
  absl::Status push(uint32_t worker, uint64_t step, float value) {
    Buffer payload = pool.take(8);
    const float both[] = {value, value};
    std::memcpy(payload.bytes().data(), both, 8);
    wire::Header header = engine::make_header({.job = 7, .self = worker}, 1, FrameType::kPush, {.step = step});
    header.op = ReduceOp::kAverage;
    return sums.push(worker, header, std::move(payload), actions);
  }
  static PlanSpec spec(uint32_t owner, uint32_t moved) {
    return {.workers = 3, .epoch = moved + 1, .tensors = {{.owners = {owner}, .moved = moved, .group = {0, 2}}}};
  }
  kernels::Kernels kernels = *kernels::Kernels::choose("");
  BufferPool pool;
  engine::MemoryBudget memory{0};
  engine::Releases releases;
  engine::Actions actions;
  engine::Sums sums{{.job = 7, .self = 3}, &kernels, &pool, &memory, &releases};
};

TEST_F(SumsOfGroup, AnswersGroupAlone) {
  sums.follow(build_plan(spec(3, 0)));
  ASSERT_TRUE(push(2, 0, 1).ok());
  ASSERT_TRUE(push(0, 0, 4).ok());
  ASSERT_EQ(actions.sends.size(), 2u);
  EXPECT_EQ(actions.sends[0].worker, 0u);
  EXPECT_EQ(actions.sends[1].worker, 2u);
  float average = 0;
  std::memcpy(&average, actions.sends[0].payload.bytes().data(), sizeof(average));
  EXPECT_EQ(average, 2.5F);
  sums.acknowledge(0, {.step = 1}, actions);
  EXPECT_FALSE(sums.is_released({.step = 1}));
  sums.acknowledge(2, {.step = 1}, actions);
  EXPECT_TRUE(sums.is_released({.step = 1}));
}

TEST_F(SumsOfGroup, TakeoverHearsGroupAlone) {
  sums.follow(build_plan(spec(1, 0)));
  sums.follow(build_plan(spec(3, 2)));
  sums.acknowledge(0, {.step = 4}, actions);
  EXPECT_FALSE(sums.is_released({.step = 4}));
  sums.acknowledge(2, {.step = 4}, actions);
  EXPECT_TRUE(sums.is_released({.step = 4}));
}

TEST_F(SumsTest, ActionsTellContributionsAndSums) {
  ASSERT_TRUE(push(0, 0).ok());
  EXPECT_TRUE(actions.has_contributed);
  EXPECT_FALSE(actions.has_summed);
  ASSERT_TRUE(push(0, 0).ok());
  EXPECT_FALSE(actions.has_contributed) << "a second copy";
  ASSERT_TRUE(push(1, 0).ok());
  EXPECT_TRUE(actions.has_contributed && actions.has_summed);
}

TEST_F(SumsTest, ReleasedOnceAllHaveIt) {
  EXPECT_TRUE(sums.is_released({.step = 0}));
  EXPECT_FALSE(sums.is_released({.step = 1})) << "step 1 is not summed";
  ASSERT_TRUE(push(0, 0).ok());
  ASSERT_TRUE(push(1, 0).ok());
  acknowledge(0, 1);
  EXPECT_FALSE(sums.is_released({.step = 1}));
  acknowledge(1, 1);
  EXPECT_TRUE(sums.is_released({.step = 1}));
}

TEST_F(SumsTest, IdleWithoutLastMissingWorker) {
  EXPECT_TRUE(sums.is_idle_without(0));
  ASSERT_TRUE(push(0, 0).ok());
  EXPECT_FALSE(sums.is_idle_without(0)) << "worker 1 may still contribute to this sum";
  EXPECT_TRUE(sums.is_idle_without(1)) << "the sum can never be made without worker 1";
  ASSERT_TRUE(push(1, 0).ok());
  EXPECT_FALSE(sums.is_idle_without(1)) << "a result is retained";
}

TEST_F(SumsTest, WorkerAheadOfTheStep) {
  EXPECT_TRUE(sums.check_progress(0, {.step = 0}).ok());
  EXPECT_EQ(sums.check_progress(0, {.step = 1}).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SumsTest, MovedPartitionLeavesNothing) {
  ASSERT_TRUE(push(0, 0).ok());
  ASSERT_TRUE(push(1, 0).ok());
  ASSERT_TRUE(push(0, 1).ok());
  EXPECT_EQ(memory.reserved(), 4 * kBlock);
  sums.follow(build_plan({.epoch = 2, .tensors = {{.owners = {1, 1}, .moved = 2}}}));
  actions.clear();
  EXPECT_EQ(memory.reserved(), 0u);
  EXPECT_EQ(pool.bytes_in_use(), 0u);
  EXPECT_EQ(releases.first_unreleased(), 1u);
}

TEST_F(SumsTest, ReturningPartitionIsTakenOver) {
  move_away_and_back();
  EXPECT_TRUE(sums.check_progress(0, {.step = 6}).ok()) << "the first worker may be at any step";
  acknowledge(0, 6);
  EXPECT_EQ(sums.check_progress(1, {.step = 4}).code(), absl::StatusCode::kFailedPrecondition);
  acknowledge(1, 5);
  ASSERT_THAT(receivers(FrameType::kFetch), ElementsAre(0));
  EXPECT_EQ(actions.sends[0].header.step, 5u);
  EXPECT_EQ(sums.handed_bytes(), kBlock);
  EXPECT_EQ(hand(0, 6).code(), absl::StatusCode::kFailedPrecondition)
      << "the result is of another step than the fetched one";
  ASSERT_TRUE(hand(0, 5).ok());
  EXPECT_THAT(receivers(FrameType::kResult), ElementsAre(1));
  acknowledge(1, 6);
  EXPECT_EQ(sums.handed_bytes(), 0u);
  EXPECT_EQ(sums.counters().takeovers, 1u);
}

}  // namespace
}  // namespace gleaner::testing
