// Tests of the memory cap: sums that are begun continue, and others wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/block_size.h"
#include "tests/unit/engine/blocks.h"
#include "tests/unit/engine/engine_rig.h"

namespace gleaner::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::FrameType;

// Two workers. A sum of 8 bytes needs three blocks of memory, a retained result one.
const PlanSpec kTwoTensors{.tensors = {{.owners = {2}}, {.owners = {2}}}};

TEST(EngineMemory, ReservesFromContributionToSum) {
  EngineRig rig(kTwoTensors);
  ASSERT_TRUE(rig.take_plan().ok());
  ASSERT_TRUE(rig.push(0, {}, {1, 2}).ok());
  EXPECT_EQ(rig.engine.counters().memory_bytes, 3 * kBlock);
  ASSERT_TRUE(rig.push(1, {}, {1, 2}).ok());
  EXPECT_EQ(rig.engine.counters().memory_bytes, kBlock);
}

TEST(EngineMemory, DefersNewSumsOnly) {
  EngineRig rig(kTwoTensors, 3 * kBlock);
  ASSERT_TRUE(rig.take_plan().ok());
  ASSERT_TRUE(rig.push(0, {.tensor = 0}, {1, 2}).ok());
  ASSERT_TRUE(rig.push(1, {.tensor = 1}, {5, 5}).ok());
  ASSERT_THAT(rig.receivers(FrameType::kDefer), ElementsAre(1));
  EXPECT_EQ(rig.actions.sends.at(0).header.tensor, 1u);
  EXPECT_TRUE(rig.actions.sends.at(0).payload.empty());
  EXPECT_EQ(rig.engine.counters().deferred, 1u);
  ASSERT_TRUE(rig.push(1, {.tensor = 0}, {1, 2}).ok());
  EXPECT_THAT(rig.receivers(FrameType::kResult), ElementsAre(0, 1));
}

TEST(EngineMemory, RetainedResultsCount) {
  EngineRig rig(kTwoTensors, 3 * kBlock);
  ASSERT_TRUE(rig.take_plan().ok());
  ASSERT_TRUE(rig.push(0, {}, {1, 2}).ok());
  ASSERT_TRUE(rig.push(1, {}, {1, 2}).ok());
  ASSERT_TRUE(rig.push(0, {.tensor = 1}, {1, 2}).ok());
  EXPECT_THAT(rig.receivers(FrameType::kDefer), ElementsAre(0));
  ASSERT_TRUE(rig.acknowledge(0, {{.step = 1}}).ok());
  ASSERT_TRUE(rig.acknowledge(1, {{.step = 1}}).ok());
  ASSERT_TRUE(rig.push(0, {.tensor = 1}, {1, 2}).ok());
  EXPECT_THAT(rig.actions.sends, IsEmpty());
  EXPECT_EQ(rig.engine.counters().memory_bytes, 3 * kBlock);
}

TEST(EngineMemory, DeferredPushAcknowledges) {
  EngineRig rig(kTwoTensors, 4 * kBlock);
  ASSERT_TRUE(rig.take_plan().ok());
  ASSERT_TRUE(rig.push(0, {}, {1, 2}).ok());
  ASSERT_TRUE(rig.push(1, {}, {1, 2}).ok());
  ASSERT_TRUE(rig.push(0, {.tensor = 1}, {1, 2}).ok());  // reaches the cap
  ASSERT_TRUE(rig.push(0, {.step = 1}, {1, 2}).ok());
  ASSERT_THAT(rig.receivers(FrameType::kDefer), ElementsAre(0));
  ASSERT_TRUE(rig.push(1, {.step = 1}, {1, 2}).ok());
  ASSERT_THAT(rig.receivers(FrameType::kDefer), ElementsAre(1));
  EXPECT_EQ(rig.engine.counters().memory_bytes, 3 * kBlock)
      << "both workers have step 0 of tensor 0, so its result was freed";
}

TEST(EngineMemory, RefusesPlanThatNeverFits) {
  EngineRig rig({.tensors = {{.owners = {2}}, {.owners = {0}, .bytes = 80000}}}, 3 * kBlock - 1);
  EXPECT_EQ(rig.engine.prepare(rig.plan).code(), absl::StatusCode::kResourceExhausted);
  EngineRig fits({.tensors = {{.owners = {2}}, {.owners = {0}, .bytes = 80000}}}, 3 * kBlock);
  EXPECT_TRUE(fits.engine.prepare(fits.plan).ok()) << "partitions of other owners do not count";
}

TEST(EngineMemory, CountsBlocksOfBuffers) {
  constexpr uint32_t kBytes = (64 << 10) + 4;  // takes blocks of 128 KiB
  EngineRig rig({.tensors = {{.owners = {2}, .bytes = kBytes}}}, 3 * block_size(kBytes));
  ASSERT_TRUE(rig.take_plan().ok());
  const std::vector<float> values(kBytes / sizeof(float), 1);
  ASSERT_TRUE(rig.push(0, {}, values).ok());
  EXPECT_EQ(rig.engine.counters().memory_bytes, 3 * 128 << 10);
  ASSERT_TRUE(rig.push(1, {}, values).ok());
  EXPECT_EQ(rig.engine.counters().memory_bytes, 128 << 10);
  EXPECT_EQ(rig.pool.bytes_in_use(), rig.engine.counters().memory_bytes);
  EngineRig smaller({.tensors = {{.owners = {2}, .bytes = kBytes}}}, 3 * block_size(kBytes) - 1);
  EXPECT_EQ(smaller.engine.prepare(smaller.plan).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace gleaner::testing
