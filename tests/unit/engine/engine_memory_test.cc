// The memory cap: what is begun goes on, what is not waits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/engine_rig.h"

namespace gleaner::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::FrameType;

// Two workers; a sum of 8 bytes needs 24, a retained result 8.
const PlanSpec kTwoTensors{.tensors = {{.owners = {2}}, {.owners = {2}}}};

TEST(EngineMemory, ReservesAtTheFirstContributionAndFreesWithTheSum) {
  EngineRig rig(kTwoTensors);
  ASSERT_TRUE(rig.take_plan().ok());
  ASSERT_TRUE(rig.push(0, {}, {1, 2}).ok());
  EXPECT_EQ(rig.engine.counters().memory_bytes, 24u);
  ASSERT_TRUE(rig.push(1, {}, {1, 2}).ok());
  EXPECT_EQ(rig.engine.counters().memory_bytes, 8u);
}

TEST(EngineMemory, DefersWhatWouldExceedTheCapButLetsInWhatIsBegun) {
  EngineRig rig(kTwoTensors, 24);
  ASSERT_TRUE(rig.take_plan().ok());
  ASSERT_TRUE(rig.push(0, {.tensor = 0}, {1, 2}).ok());
  ASSERT_TRUE(rig.push(1, {.tensor = 1}, {5, 5}).ok());
  ASSERT_THAT(rig.receivers(FrameType::kDefer), ElementsAre(1));
  EXPECT_EQ(rig.actions.at(0).header.tensor, 1u);
  EXPECT_TRUE(rig.actions.at(0).payload.empty());
  EXPECT_EQ(rig.engine.counters().deferred, 1u);
  ASSERT_TRUE(rig.push(1, {.tensor = 0}, {1, 2}).ok());
  EXPECT_THAT(rig.receivers(FrameType::kResult), ElementsAre(0, 1));
}

TEST(EngineMemory, ARetainedResultCountsUntilItIsAcknowledged) {
  EngineRig rig(kTwoTensors, 24);
  ASSERT_TRUE(rig.take_plan().ok());
  ASSERT_TRUE(rig.push(0, {}, {1, 2}).ok());
  ASSERT_TRUE(rig.push(1, {}, {1, 2}).ok());
  ASSERT_TRUE(rig.push(0, {.tensor = 1}, {1, 2}).ok());
  EXPECT_THAT(rig.receivers(FrameType::kDefer), ElementsAre(0));
  ASSERT_TRUE(rig.acknowledge(0, {{.step = 1}}).ok());
  ASSERT_TRUE(rig.acknowledge(1, {{.step = 1}}).ok());
  ASSERT_TRUE(rig.push(0, {.tensor = 1}, {1, 2}).ok());
  EXPECT_THAT(rig.actions, IsEmpty());
  EXPECT_EQ(rig.engine.counters().memory_bytes, 24u);
}

TEST(EngineMemory, ADeferredPushStillAcknowledgesTheStepBefore) {
  EngineRig rig(kTwoTensors, 24 + 8);
  ASSERT_TRUE(rig.take_plan().ok());
  ASSERT_TRUE(rig.push(0, {}, {1, 2}).ok());
  ASSERT_TRUE(rig.push(1, {}, {1, 2}).ok());
  ASSERT_TRUE(rig.push(0, {.tensor = 1}, {1, 2}).ok());  // fills the cap
  ASSERT_TRUE(rig.push(0, {.step = 1}, {1, 2}).ok());
  ASSERT_THAT(rig.receivers(FrameType::kDefer), ElementsAre(0));
  ASSERT_TRUE(rig.push(1, {.step = 1}, {1, 2}).ok());
  ASSERT_THAT(rig.receivers(FrameType::kDefer), ElementsAre(1));
  EXPECT_EQ(rig.engine.counters().memory_bytes, 24u) << "both have step 0 of tensor 0, so its result is gone";
}

TEST(EngineMemory, APlanWhoseLargestPartitionCanNeverFitIsRefused) {
  EngineRig rig({.tensors = {{.owners = {2}}, {.owners = {0}, .bytes = 800}}}, 23);
  EXPECT_EQ(rig.engine.prepare(rig.plan).code(), absl::StatusCode::kResourceExhausted);
  EngineRig fits({.tensors = {{.owners = {2}}, {.owners = {0}, .bytes = 800}}}, 24);
  EXPECT_TRUE(fits.engine.prepare(fits.plan).ok()) << "partitions of others do not count";
}

}  // namespace
}  // namespace gleaner::testing
