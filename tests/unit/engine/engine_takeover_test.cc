// Tests of a partition that moves to the engine from another owner: the reports of workers, the results that the engine
// fetches from them, and the following sums.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/engine_rig.h"

namespace gleaner::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using wire::FrameType;

// Three workers. The engine is member 3, which takes the partition over from member 0 in epoch 2.
class EngineTakeover : public ::testing::Test {
 protected:
  EngineTakeover() {
    EXPECT_TRUE(rig.take_plan().ok());
    rig.plan = build_plan({.workers = 3, .epoch = 2, .tensors = {{.owners = {3}, .moved = 2}}});
    EXPECT_TRUE(rig.take_plan().ok());
  }
  absl::Status tell(uint32_t worker, uint64_t next) { return rig.acknowledge(worker, {{.step = next}}); }
  absl::Status hand(uint32_t worker, uint64_t step, const std::vector<float>& values) {
    return rig.send(worker, rig.header(FrameType::kHand, worker, {.step = step}), rig.payload(values));
  }
  EngineRig rig{{.workers = 3, .tensors = {{.owners = {0}}}}};
};

TEST_F(EngineTakeover, WorkersAtOneStepContinue) {
  for (uint32_t worker = 0; worker < 3; ++worker) ASSERT_TRUE(tell(worker, 5).ok());
  EXPECT_EQ(rig.engine.counters().takeovers, 1u);
  for (uint32_t worker = 0; worker < 3; ++worker) ASSERT_TRUE(rig.push(worker, {.step = 5}, {1, 2}).ok());
  EXPECT_THAT(rig.receivers(FrameType::kResult), ElementsAre(0, 1, 2));
  EXPECT_THAT(rig.values_sent(0), ElementsAre(3, 6));
}

TEST_F(EngineTakeover, PushReportsTheStep) {
  for (uint32_t worker = 0; worker < 3; ++worker) ASSERT_TRUE(rig.push(worker, {.step = 5}, {1, 2}).ok());
  EXPECT_THAT(rig.values_sent(0), ElementsAre(3, 6));
}

TEST_F(EngineTakeover, FetchesResultThatWorkersLack) {
  ASSERT_TRUE(rig.push(0, {.step = 4}, {1, 2}).ok());
  ASSERT_TRUE(rig.push(1, {.step = 5}, {10, 20}).ok());
  EXPECT_THAT(rig.actions.sends, IsEmpty());
  ASSERT_TRUE(tell(2, 5).ok());
  ASSERT_THAT(rig.receivers(FrameType::kFetch), ElementsAre(1));
  EXPECT_EQ(rig.actions.sends[0].header.step, 4u);
  ASSERT_TRUE(hand(1, 4, {7, 7}).ok());
  EXPECT_THAT(rig.receivers(FrameType::kResult), ElementsAre(0)) << "the other workers have the result";
  EXPECT_EQ(rig.actions.sends[0].header.step, 4u);
  EXPECT_THAT(rig.values_sent(0), ElementsAre(7, 7));
  ASSERT_TRUE(rig.push(0, {.step = 5}, {10, 20}).ok());
  ASSERT_TRUE(rig.push(2, {.step = 5}, {10, 20}).ok());
  EXPECT_THAT(rig.receivers(FrameType::kResult), ElementsAre(0, 1, 2));
  EXPECT_THAT(rig.values_sent(0), ElementsAre(30, 60));
  EXPECT_EQ(rig.engine.counters().handed, 1u);
  EXPECT_EQ(rig.engine.counters().handed_bytes, 0u)
      << "worker 0 has pushed the next step, so it has the previous result";
}

TEST_F(EngineTakeover, WorkerAheadConnectsLast) {
  ASSERT_TRUE(rig.push(0, {.step = 4}, {1, 2}).ok());
  ASSERT_TRUE(rig.push(1, {.step = 4}, {1, 2}).ok());
  EXPECT_GT(rig.engine.counters().memory_bytes, 0u);
  ASSERT_TRUE(tell(2, 5).ok());
  EXPECT_EQ(rig.engine.counters().memory_bytes, 0u) << "the contributions belong to a completed step";
  EXPECT_THAT(rig.receivers(FrameType::kFetch), ElementsAre(2));
  ASSERT_TRUE(hand(2, 4, {7, 7}).ok());
  EXPECT_THAT(rig.receivers(FrameType::kResult), ElementsAre(0, 1));
}

TEST_F(EngineTakeover, FetchesAgainAfterReconnect) {
  ASSERT_TRUE(tell(0, 4).ok());
  ASSERT_TRUE(tell(1, 5).ok());
  ASSERT_TRUE(tell(2, 5).ok());
  ASSERT_THAT(rig.receivers(FrameType::kFetch), ElementsAre(1));
  ASSERT_TRUE(tell(2, 5).ok());
  EXPECT_THAT(rig.actions.sends, IsEmpty());
  ASSERT_TRUE(rig.push(1, {.step = 5}, {1, 2}).ok());
  EXPECT_THAT(rig.actions.sends, IsEmpty()) << "a repeated push does not mean that the result was lost";
  ASSERT_TRUE(tell(1, 5).ok());
  EXPECT_THAT(rig.receivers(FrameType::kFetch), ElementsAre(1));
  ASSERT_TRUE(hand(1, 4, {7, 7}).ok());
  ASSERT_TRUE(hand(1, 4, {7, 7}).ok());
  EXPECT_THAT(rig.actions.sends, IsEmpty()) << "a second copy";
}

TEST_F(EngineTakeover, RetainsFetchedResult) {
  ASSERT_TRUE(tell(0, 4).ok());
  ASSERT_TRUE(tell(1, 5).ok());
  ASSERT_TRUE(tell(2, 5).ok());
  ASSERT_TRUE(hand(1, 4, {7, 7}).ok());
  ASSERT_TRUE(rig.push(0, {.step = 4}, {1, 2}).ok());
  EXPECT_THAT(rig.values_sent(0), ElementsAre(7, 7)) << "the first result may have been lost with the connection";
  ASSERT_TRUE(tell(0, 5).ok());
  rig.actions.clear();
  EXPECT_EQ(rig.pool.bytes_in_use(), 0u);
}

TEST_F(EngineTakeover, WorkersTwoStepsApart) {
  ASSERT_TRUE(tell(0, 4).ok());
  const absl::Status status = tell(1, 6);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no two workers are more than one step apart"));
  ASSERT_TRUE(tell(1, 5).ok());
  EXPECT_FALSE(tell(2, 6).ok()) << "worker 0 lacks step 4";
  EXPECT_FALSE(tell(2, 3).ok());
  ASSERT_TRUE(tell(2, 4).ok());
}

TEST_F(EngineTakeover, UnexpectedResult) { EXPECT_FALSE(hand(0, 4, {7, 7}).ok()); }

TEST_F(EngineTakeover, ResultsCarryReleases) {
  const auto step = [&](uint64_t number) {
    for (uint32_t worker = 0; worker < 3; ++worker) ASSERT_TRUE(rig.push(worker, {.step = number}, {1, 2}).ok());
  };
  step(5);
  EXPECT_EQ(rig.actions.sends[0].header.sequence, 0u);
  EXPECT_EQ(rig.actions.sends[0].header.confirmed, 0u);
  step(6);
  EXPECT_EQ(rig.actions.sends[0].header.sequence, 1u);
  EXPECT_EQ(rig.actions.sends[0].header.confirmed, 1u) << "all workers have pushed step 6, so they have step 5";
}

TEST_F(EngineTakeover, TellsReleasesOnRequest) {
  const auto ask = [&](const std::vector<wire::PartitionKey>& keys) {
    ASSERT_TRUE(rig.send(2, rig.header(FrameType::kRelease, 2, {}), rig.payload(keys)).ok());
    ASSERT_THAT(rig.receivers(FrameType::kRelease), ElementsAre(2));
  };
  ASSERT_TRUE(tell(0, 5).ok());
  ASSERT_TRUE(tell(1, 5).ok());
  ask({{.step = 5}});
  EXPECT_EQ(rig.actions.sends[0].payload.size(), 0u) << "not all workers have told their step";
  ASSERT_TRUE(tell(2, 5).ok());
  ask({{.step = 5}});
  EXPECT_EQ(rig.actions.sends[0].payload.size(), sizeof(wire::PartitionKey));
  for (uint32_t worker = 0; worker < 3; ++worker) ASSERT_TRUE(rig.push(worker, {.step = 5}, {1, 2}).ok());
  ask({});
  EXPECT_EQ(rig.actions.sends[0].header.confirmed, 0u);
  for (uint32_t worker = 0; worker < 3; ++worker) ASSERT_TRUE(tell(worker, 6).ok());
  ask({});
  EXPECT_EQ(rig.actions.sends[0].header.confirmed, 1u);
}

}  // namespace
}  // namespace gleaner::testing
