// Tests of plans in the engine: prepare, commit, discard, and frames of other epochs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/engine_rig.h"

namespace gleaner::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::FrameType;

const PlanSpec kFirst{.epoch = 5, .tensors = {{.owners = {2}, .since = 4}}};
const PlanSpec kExtended{.epoch = 7, .tensors = {{.owners = {2}, .since = 4}, {.owners = {2}, .since = 7}}};
const PlanSpec kMoved{.epoch = 7, .tensors = {{.owners = {1}, .since = 4, .moved = 7}}};

class EnginePlan : public ::testing::Test {
 protected:
  EnginePlan() { EXPECT_TRUE(rig.take_plan().ok()); }
  absl::Status push_at(uint32_t epoch, uint32_t worker, const Key& key) {
    wire::Header header = rig.header(FrameType::kPush, worker, key);
    header.epoch = epoch;
    return rig.send(worker, header, rig.payload(std::vector<float>{1, 2}));
  }
  EngineRig rig{kFirst};
};

TEST_F(EnginePlan, PreparesOnlyLaterEpochs) {
  EXPECT_EQ(rig.engine.epoch(), 5u);
  EXPECT_EQ(rig.engine.prepare(rig.plan).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(rig.commit(7).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(EnginePlan, AnExtensionKeepsContributions) {
  ASSERT_TRUE(push_at(5, 0, {}).ok());
  ASSERT_TRUE(rig.engine.prepare(build_plan(kExtended)).ok());
  ASSERT_TRUE(rig.commit(7).ok());
  ASSERT_TRUE(push_at(5, 1, {}).ok()) << "a frame of the previous epoch is not fenced";
  EXPECT_THAT(rig.receivers(FrameType::kResult), ElementsAre(0, 1));
  EXPECT_EQ(rig.actions.sends.at(0).header.epoch, 7u);
  EXPECT_TRUE(push_at(7, 1, {.tensor = 1}).ok());
}

TEST_F(EnginePlan, FrameCommitsPreparedPlan) {
  ASSERT_TRUE(rig.engine.prepare(build_plan(kExtended)).ok());
  EXPECT_EQ(rig.engine.epoch(), 5u);
  ASSERT_TRUE(push_at(7, 0, {.tensor = 1}).ok());
  EXPECT_EQ(rig.engine.epoch(), 7u);
  EXPECT_TRUE(rig.commit(7).ok()) << "a late Commit of the plan in force succeeds";
}

TEST_F(EnginePlan, TellsWorkersOfCommit) {
  EXPECT_THAT(rig.receivers(FrameType::kCommitted), ElementsAre(0, 1));
  ASSERT_TRUE(rig.engine.prepare(build_plan(kExtended)).ok());
  ASSERT_TRUE(push_at(5, 0, {}).ok());
  EXPECT_THAT(rig.receivers(FrameType::kCommitted), ElementsAre()) << "the plan is only prepared";
  ASSERT_TRUE(push_at(7, 0, {.tensor = 1}).ok());
  ASSERT_THAT(rig.receivers(FrameType::kCommitted), ElementsAre(0, 1));
  EXPECT_EQ(rig.actions.sends.at(0).header.epoch, 7u);
  ASSERT_TRUE(rig.commit(7).ok());
  EXPECT_THAT(rig.receivers(FrameType::kCommitted), ElementsAre()) << "the workers know the epoch";
}

TEST_F(EnginePlan, TellsConnectingWorkerThePlan) {
  rig.actions.clear();
  rig.engine.on_connected(1, rig.actions);
  ASSERT_THAT(rig.receivers(FrameType::kCommitted), ElementsAre(1));
  EXPECT_EQ(rig.actions.sends.at(0).header.epoch, 5u);
  rig.actions.clear();
  EngineRig(kFirst).engine.on_connected(1, rig.actions);
  EXPECT_TRUE(rig.actions.sends.empty()) << "no plan is in force";
}

TEST_F(EnginePlan, OnlyWorkersCommitByFrames) {
  ASSERT_TRUE(rig.engine.prepare(build_plan(kExtended)).ok());
  wire::Header header = rig.header(FrameType::kPush, 0, {});
  header.epoch = 7;
  header.sender = 1;
  EXPECT_FALSE(rig.send(0, header, rig.payload(std::vector<float>{1, 2})).ok());
  EXPECT_EQ(rig.engine.epoch(), 5u);
}

TEST_F(EnginePlan, ADiscardedPlanIsForgotten) {
  ASSERT_TRUE(rig.engine.prepare(build_plan(kExtended)).ok());
  rig.engine.discard(6);
  rig.engine.discard(7);
  EXPECT_EQ(rig.commit(7).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(push_at(7, 0, {}).ok());
  EXPECT_TRUE(rig.engine.prepare(build_plan(kExtended)).ok());
}

TEST_F(EnginePlan, FencesFramesForEarlierOwner) {
  ASSERT_TRUE(push_at(3, 0, {}).ok());
  EXPECT_EQ(rig.engine.counters().fenced, 1u);
  EXPECT_EQ(rig.engine.counters().contributions, 0u);
  ASSERT_TRUE(push_at(4, 0, {}).ok());
  EXPECT_EQ(rig.engine.counters().contributions, 1u);
}

TEST_F(EnginePlan, ForgetsMovedPartitions) {
  ASSERT_TRUE(push_at(5, 0, {}).ok());
  EXPECT_GT(rig.engine.counters().memory_bytes, 0u);
  ASSERT_TRUE(rig.engine.prepare(build_plan(kMoved)).ok());
  ASSERT_TRUE(rig.commit(7).ok());
  EXPECT_EQ(rig.engine.counters().memory_bytes, 0u);
  EXPECT_EQ(rig.pool.bytes_in_use(), 0u);
  ASSERT_TRUE(push_at(5, 1, {}).ok()) << "the worker does not know the new plan yet";
  EXPECT_EQ(rig.engine.counters().fenced, 1u);
  EXPECT_FALSE(push_at(7, 0, {}).ok()) << "the engine no longer owns the partition";
}

TEST_F(EnginePlan, AnInvalidSuccessorIsRefused) {
  PlanSpec other = kExtended;
  other.workers = 3;
  EXPECT_EQ(rig.engine.prepare(build_plan(other)).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(EngineFirstPlan, MayHaveNoTensors) {
  EngineRig rig({.epoch = 1, .tensors = {}});
  ASSERT_TRUE(rig.take_plan().ok());
  rig.plan = build_plan({.epoch = 2, .tensors = {{.owners = {2}, .since = 2}}});
  ASSERT_TRUE(rig.take_plan().ok());
  ASSERT_TRUE(rig.push(0, {}, {1, 2}).ok());
  ASSERT_TRUE(rig.push(1, {}, {1, 2}).ok());
  EXPECT_THAT(rig.receivers(FrameType::kResult), ElementsAre(0, 1));
}

}  // namespace
}  // namespace gleaner::testing
