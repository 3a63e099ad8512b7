// Tests of sums in the engine: their values, and that each contribution counts once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/block_size.h"
#include "tests/unit/engine/engine_rig.h"

namespace gleaner::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using wire::FrameType;

class EngineSums : public ::testing::Test {
 protected:
  EngineSums() { EXPECT_TRUE(rig.take_plan().ok()); }
  EngineRig rig{{.workers = 3, .local_ranks = 2, .tensors = {{.owners = {3, 3}}, {.owners = {3}}}}};
};

TEST_F(EngineSums, SumsInRankOrder) {
  // In fp32, (1 + 1e8) - 1e8 is 0, and (1e8 - 1e8) + 1 is 1.
  ASSERT_TRUE(rig.push(2, {}, {-1e8f, 1}).ok());
  ASSERT_TRUE(rig.push(1, {}, {1e8f, -1e8f}).ok());
  EXPECT_THAT(rig.actions.sends, IsEmpty());
  ASSERT_TRUE(rig.push(0, {}, {1, 1e8f}).ok());
  EXPECT_THAT(rig.receivers(FrameType::kResult), ElementsAre(0, 1, 2));
  for (size_t i = 0; i < 3; ++i) EXPECT_THAT(rig.values_sent(i), ElementsAre(0, 1));
}

TEST_F(EngineSums, ResultHasItsHeader) {
  const Key key{.tensor = 0, .partition = 1, .step = 0};
  for (uint32_t worker = 0; worker < 3; ++worker) {
    ASSERT_TRUE(rig.push(worker, key, {6, 12}, ReduceOp::kAverage).ok());
  }
  const wire::Header& header = rig.actions.sends.at(1).header;
  EXPECT_EQ(header.tensor, 0u);
  EXPECT_EQ(header.partition, 1u);
  EXPECT_EQ(header.step, 0u);
  EXPECT_EQ(header.op, ReduceOp::kAverage);
  EXPECT_EQ(header.data_type, DataType::kFloat32);
  EXPECT_EQ(header.sender, 3u);
  EXPECT_EQ(header.job, kJob);
  EXPECT_EQ(header.epoch, 1u);
  EXPECT_EQ(header.payload_bytes, 8u);
}

TEST_F(EngineSums, AveragesOverAllLocalRanks) {
  for (uint32_t worker = 0; worker < 3; ++worker) {
    ASSERT_TRUE(rig.push(worker, {}, {6, 12}, ReduceOp::kAverage).ok());
  }
  EXPECT_THAT(rig.values_sent(0), ElementsAre(3, 6));  // three workers of two ranks each
}

// Two workers of two ranks, each of which contributes 20000 to an average.
TEST(EngineSumsOfHalves, RoundsOnceFromFloat32) {
  EngineRig rig{{.workers = 2, .local_ranks = 2, .tensors = {{.owners = {2}, .bytes = 4, .type = DataType::kFloat16}}}};
  ASSERT_TRUE(rig.take_plan().ok());
  ASSERT_TRUE(rig.push(0, {}, {40000, 1}, ReduceOp::kAverage).ok());
  ASSERT_TRUE(rig.push(1, {}, {40000, 0x1p-13f}, ReduceOp::kAverage).ok());
  const engine::Send& sent = rig.actions.sends.at(1);
  EXPECT_EQ(sent.header.data_type, DataType::kFloat16);
  ASSERT_EQ(sent.payload.size(), 4u);
  uint16_t halves[2];
  std::memcpy(halves, sent.payload.bytes().data(), sizeof(halves));
  EXPECT_EQ(halves[0], 0x74E2) << "20000";
  EXPECT_EQ(halves[1], 0x3400) << "0.25";

  wire::Header rounded = rig.header(FrameType::kPush, 0, {.step = 1});
  rounded.data_type = DataType::kFloat16;
  EXPECT_THAT(std::string(rig.send(0, rounded, rig.payload(std::vector<uint16_t>{1, 2})).message()),
              HasSubstr("which has 8 bytes"));
  EXPECT_THAT(std::string(rig.send(0, rounded, rig.payload(std::vector<float>{1, 2})).message()),
              HasSubstr("sent fp16 for tensor t0 partition 0 step 1, which is fp32"));
}

TEST_F(EngineSums, IdleWithoutLastMissingWorker) {
  ASSERT_TRUE(rig.push(0, {}, {1, 1}).ok());
  EXPECT_FALSE(rig.engine.idle_without(0));
  EXPECT_TRUE(rig.engine.idle_without(1)) << "a sum that lacks its contribution is never made";
  ASSERT_TRUE(rig.push(1, {}, {1, 1}).ok());
  EXPECT_FALSE(rig.engine.idle_without(1)) << "the last worker may still come";
  ASSERT_TRUE(rig.push(2, {}, {1, 1}).ok());
  ASSERT_TRUE(rig.push(0, {.step = 1}, {1, 1}).ok());
  ASSERT_TRUE(rig.push(1, {.step = 1}, {1, 1}).ok());
  EXPECT_FALSE(rig.engine.idle_without(2)) << "the worker itself may lack the result";
  ASSERT_TRUE(rig.acknowledge(2, {{.step = 1}}).ok());
  EXPECT_TRUE(rig.engine.idle_without(2));
  EXPECT_FALSE(rig.engine.idle_without(1));
}

TEST_F(EngineSums, ASecondCopyIsIgnored) {
  ASSERT_TRUE(rig.push(0, {}, {1, 1}).ok());
  ASSERT_TRUE(rig.push(0, {}, {100, 100}).ok());
  ASSERT_TRUE(rig.push(1, {}, {1, 1}).ok());
  EXPECT_THAT(rig.actions.sends, IsEmpty());
  ASSERT_TRUE(rig.push(2, {}, {1, 1}).ok());
  EXPECT_THAT(rig.values_sent(0), ElementsAre(3, 3));
  EXPECT_EQ(rig.engine.counters().duplicates, 1u);
  EXPECT_EQ(rig.engine.counters().contributions, 3u);
}

TEST_F(EngineSums, PartitionsAreSummedApart) {
  for (uint32_t worker = 0; worker < 3; ++worker) {
    ASSERT_TRUE(rig.push(worker, {.tensor = 0}, {1, 1}).ok());
    const bool is_whole = !rig.actions.sends.empty();
    EXPECT_EQ(is_whole, worker == 2);
    if (is_whole) {
      EXPECT_THAT(rig.values_sent(0), ElementsAre(3, 3));
    }
    ASSERT_TRUE(rig.push(worker, {.tensor = 1}, {2, 2}).ok());
  }
  EXPECT_THAT(rig.values_sent(0), ElementsAre(6, 6));
  EXPECT_EQ(rig.engine.counters().sums, 2u);
  EXPECT_EQ(rig.engine.counters().summed_bytes, 16u);
}

TEST_F(EngineSums, OpsMustAgree) {
  ASSERT_TRUE(rig.push(1, {}, {1, 1}).ok());
  const absl::Status status = rig.push(2, {}, {1, 1}, ReduceOp::kAverage);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("tensor 't0': in its 1st push_pull worker 1 asks for its sum, worker 2 for its "
                         "average; "));
  EXPECT_EQ(rig.engine.counters().contributions, 1u);
}

class EngineRetention : public EngineSums {
 protected:
  void sum(uint64_t step) {
    for (uint32_t worker = 0; worker < 3; ++worker) ASSERT_TRUE(rig.push(worker, {.step = step}, {1, 2}).ok());
  }
};

TEST_F(EngineRetention, RepeatedPushRepeatsResult) {
  sum(0);
  ASSERT_TRUE(rig.push(1, {}, {50, 50}).ok());
  EXPECT_THAT(rig.receivers(FrameType::kResult), ElementsAre(1));
  EXPECT_THAT(rig.values_sent(0), ElementsAre(3, 6));
  EXPECT_EQ(rig.engine.counters().resent, 1u);
}

TEST_F(EngineRetention, AcknowledgedResultIsNotRepeated) {
  sum(0);
  ASSERT_TRUE(rig.acknowledge(1, {{.step = 1}}).ok());
  ASSERT_TRUE(rig.push(1, {}, {1, 2}).ok());
  EXPECT_THAT(rig.actions.sends, IsEmpty());
  EXPECT_EQ(rig.engine.counters().resent, 0u);
}

TEST_F(EngineRetention, RetainsUntilAllAcknowledge) {
  sum(0);
  rig.actions.clear();
  EXPECT_GT(rig.pool.bytes_in_use(), 0u);
  EXPECT_EQ(rig.engine.counters().memory_bytes, block_size(8));
  ASSERT_TRUE(rig.acknowledge(0, {{.step = 1}}).ok());
  ASSERT_TRUE(rig.acknowledge(1, {{.step = 1}}).ok());
  ASSERT_TRUE(rig.acknowledge(1, {{.step = 1}}).ok());
  EXPECT_GT(rig.pool.bytes_in_use(), 0u);
  ASSERT_TRUE(rig.acknowledge(2, {{.step = 1}}).ok());
  EXPECT_EQ(rig.pool.bytes_in_use(), 0u);
  EXPECT_EQ(rig.engine.counters().memory_bytes, 0u);
}

TEST_F(EngineRetention, NextPushAcknowledges) {
  sum(0);
  ASSERT_TRUE(rig.acknowledge(0, {{.step = 1}}).ok());
  ASSERT_TRUE(rig.acknowledge(1, {{.step = 1}}).ok());
  EXPECT_EQ(rig.engine.counters().memory_bytes, block_size(8));
  ASSERT_TRUE(rig.push(2, {.step = 1}, {1, 2}).ok());
  EXPECT_EQ(rig.engine.counters().memory_bytes, block_size(8) * 4);  // for the next sum; the result is freed
}

TEST_F(EngineRetention, TwoStepsInProgress) {
  sum(0);
  ASSERT_TRUE(rig.push(0, {.step = 1}, {10, 10}).ok());
  ASSERT_TRUE(rig.push(1, {.step = 0}, {1, 2}).ok());  // it has lost the result of step 0
  EXPECT_THAT(rig.values_sent(0), ElementsAre(3, 6));
  ASSERT_TRUE(rig.push(2, {.step = 1}, {10, 10}).ok());
  ASSERT_TRUE(rig.push(1, {.step = 1}, {10, 10}).ok());
  EXPECT_THAT(rig.receivers(FrameType::kResult), ElementsAre(0, 1, 2));
  EXPECT_THAT(rig.values_sent(2), ElementsAre(30, 30));
}

TEST_F(EngineRetention, IgnoresLateCopies) {
  for (uint64_t step = 0; step < 3; ++step) sum(step);
  ASSERT_TRUE(rig.push(0, {.step = 1}, {1, 2}).ok());
  EXPECT_THAT(rig.actions.sends, IsEmpty());
  ASSERT_TRUE(rig.acknowledge(0, {{.step = 2}, {.step = 1}}).ok());
  EXPECT_EQ(rig.engine.counters().memory_bytes, block_size(8));
}

TEST_F(EngineRetention, StepTooFarAhead) {
  ASSERT_TRUE(rig.push(0, {}, {1, 2}).ok());
  const absl::Status status = rig.push(1, {.step = 1}, {1, 2});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker/1 is at tensor t0 partition 0 step 1"));
  EXPECT_EQ(rig.engine.counters().contributions, 1u);
}

TEST_F(EngineRetention, AckOfIncompleteSum) {
  sum(0);
  const absl::Status status = rig.acknowledge(0, {{.step = 1}, {.step = 1, .tensor = 1}});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(rig.push(0, {}, {1, 2}).ok());
  EXPECT_THAT(rig.receivers(FrameType::kResult), ElementsAre(0)) << "the first key of the bad ack must not count";
}

}  // namespace
}  // namespace gleaner::testing
