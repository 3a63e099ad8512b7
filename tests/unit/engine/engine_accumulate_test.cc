// Tests of partitions that accumulate: each contribution counts once, each answer has all earlier contributions, and
// later owners continue from the last answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/block_size.h"
#include "tests/unit/engine/engine_rig.h"

namespace gleaner::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using wire::FrameType;

PlanSpec accumulating(uint32_t staleness = plan::kUnbounded) {
  return {.workers = 3, .tensors = {{.owners = {3}, .accumulates = true, .staleness = staleness}}};
}

struct Answer {
  uint32_t worker = 0;
  uint64_t step = 0;
  std::vector<float> sum;
  std::vector<uint64_t> counts;
  friend bool operator==(const Answer&, const Answer&) = default;
};

void PrintTo(const Answer& answer, std::ostream* out) {
  *out << "to " << answer.worker << " step " << answer.step << " sum " << ::testing::PrintToString(answer.sum)
       << " counts " << ::testing::PrintToString(answer.counts);
}

class AccumulateRig : public EngineRig {
 public:
  using EngineRig::EngineRig;
  absl::Status add(uint32_t worker, uint64_t step, const std::vector<float>& values) {
    return push(worker, {.step = step}, values, ReduceOp::kAccumulate);
  }
  absl::Status hand(uint32_t worker, const std::vector<float>& sum, const std::vector<uint64_t>& counts,
                    uint64_t version) {
    Buffer both = pool.take(sum.size() * sizeof(float) + counts.size() * sizeof(uint64_t));
    std::memcpy(both.bytes().data(), sum.data(), sum.size() * sizeof(float));
    std::memcpy(both.bytes().data() + sum.size() * sizeof(float), counts.data(), counts.size() * sizeof(uint64_t));
    wire::Header what = header(FrameType::kHand, worker, {.step = version});
    what.op = ReduceOp::kAccumulate;
    return send(worker, what, std::move(both));
  }
  std::vector<Answer> answers() const {
    std::vector<Answer> all;
    for (const engine::Send& send : actions.sends) {
      if (send.header.type != FrameType::kResult) continue;
      EXPECT_EQ(send.header.op, ReduceOp::kAccumulate);
      Answer answer{send.worker, send.header.step, std::vector<float>(2), std::vector<uint64_t>(plan->workers)};
      EXPECT_EQ(send.payload.size(), 8 + 8 * plan->workers);
      std::memcpy(answer.sum.data(), send.payload.bytes().data(), 8);
      std::memcpy(answer.counts.data(), send.payload.bytes().data() + 8, 8 * plan->workers);
      all.push_back(std::move(answer));
    }
    return all;
  }
};

class EngineAccumulate : public ::testing::Test {
 protected:
  EngineAccumulate() { EXPECT_TRUE(rig.take_plan().ok()); }
  AccumulateRig rig{accumulating()};
};

TEST_F(EngineAccumulate, AnswersHaveAllContributions) {
  ASSERT_TRUE(rig.add(1, 0, {1, 2}).ok());
  EXPECT_THAT(rig.answers(), ElementsAre(Answer{1, 0, {1, 2}, {0, 1, 0}}));
  ASSERT_TRUE(rig.add(1, 1, {10, 20}).ok());
  EXPECT_THAT(rig.answers(), ElementsAre(Answer{1, 1, {11, 22}, {0, 2, 0}}));
  ASSERT_TRUE(rig.add(0, 0, {100, 200}).ok());
  EXPECT_THAT(rig.answers(), ElementsAre(Answer{0, 0, {111, 222}, {1, 2, 0}}));
}

TEST_F(EngineAccumulate, SecondCopyCountsOnce) {
  ASSERT_TRUE(rig.add(1, 0, {1, 2}).ok());
  ASSERT_TRUE(rig.add(2, 0, {10, 20}).ok());
  ASSERT_TRUE(rig.add(1, 0, {1, 2}).ok());
  EXPECT_THAT(rig.answers(), ElementsAre(Answer{1, 0, {11, 22}, {0, 1, 1}})) << "the answer has the present sum";
  ASSERT_TRUE(rig.add(1, 1, {1, 2}).ok());
  ASSERT_TRUE(rig.add(1, 0, {1, 2}).ok());
  EXPECT_THAT(rig.answers(), IsEmpty()) << "a worker that pushes the next step has the answer";
  EXPECT_EQ(rig.engine.counters().contributions, 3u);
  EXPECT_EQ(rig.engine.counters().duplicates, 2u);
}

TEST_F(EngineAccumulate, AnswerInFlightKeepsValues) {
  ASSERT_TRUE(rig.add(1, 0, {1, 2}).ok());
  const engine::Actions queued = rig.actions;
  ASSERT_TRUE(rig.add(0, 0, {10, 20}).ok());
  rig.actions = queued;
  EXPECT_THAT(rig.answers(), ElementsAre(Answer{1, 0, {1, 2}, {0, 1, 0}}));
}

TEST_F(EngineAccumulate, ContributionOutOfOrder) {
  const absl::Status status = rig.add(1, 1, {1, 2});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("only 0 of its contributions"));
}

TEST_F(EngineAccumulate, OpsDoNotMix) {
  EXPECT_EQ(rig.push(0, {}, {1, 2}, ReduceOp::kSum).code(), absl::StatusCode::kInvalidArgument);
  EngineRig other{{.workers = 3, .tensors = {{.owners = {3}}}}};
  ASSERT_TRUE(other.take_plan().ok());
  EXPECT_EQ(other.push(0, {}, {1, 2}, ReduceOp::kAccumulate).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(EngineAccumulate, MovedSumFreesItsMemory) {
  ASSERT_TRUE(rig.add(1, 0, {1, 2}).ok());
  ASSERT_TRUE(rig.add(1, 1, {1, 2}).ok());
  EXPECT_EQ(rig.engine.counters().accumulated_bytes, block_size(8 + 3 * 8));
  EXPECT_EQ(rig.engine.counters().memory_bytes, 0u) << "no worker waits for a contribution";
  PlanSpec away = accumulating();
  away.epoch = 2;
  away.tensors[0].owners = {0};
  away.tensors[0].moved = 2;
  rig.plan = build_plan(away);
  ASSERT_TRUE(rig.take_plan().ok());
  rig.actions.clear();
  EXPECT_EQ(rig.engine.counters().accumulated_bytes, 0u);
  EXPECT_EQ(rig.pool.bytes_in_use(), 0u);
}

TEST(EngineStaleness, AnswerWaitsForSlowWorkers) {
  AccumulateRig rig{accumulating(1)};
  ASSERT_TRUE(rig.take_plan().ok());
  ASSERT_TRUE(rig.add(0, 0, {1, 0}).ok());
  ASSERT_TRUE(rig.add(0, 1, {1, 0}).ok());
  EXPECT_THAT(rig.answers(), ElementsAre(Answer{0, 1, {2, 0}, {2, 0, 0}})) << "worker 0 is one step ahead";
  ASSERT_TRUE(rig.add(0, 2, {1, 0}).ok());
  EXPECT_THAT(rig.answers(), IsEmpty());
  ASSERT_TRUE(rig.add(1, 0, {0, 1}).ok());
  EXPECT_THAT(rig.answers(), ElementsAre(Answer{1, 0, {3, 1}, {3, 1, 0}})) << "worker 2 is still missing";
  ASSERT_TRUE(rig.add(0, 2, {1, 0}).ok());
  EXPECT_THAT(rig.answers(), IsEmpty()) << "a repeat waits as well";
  ASSERT_TRUE(rig.add(2, 0, {0, 1}).ok());
  EXPECT_THAT(rig.answers(), ElementsAre(Answer{0, 2, {3, 2}, {3, 1, 1}}, Answer{2, 0, {3, 2}, {3, 1, 1}}));
}

TEST(EngineStaleness, ZeroAllowsOneStepApart) {
  AccumulateRig rig{accumulating(0)};
  ASSERT_TRUE(rig.take_plan().ok());
  ASSERT_TRUE(rig.add(0, 0, {1, 0}).ok());
  EXPECT_EQ(rig.answers().size(), 1u);
  ASSERT_TRUE(rig.add(0, 1, {1, 0}).ok());
  EXPECT_THAT(rig.answers(), IsEmpty());
}

class EngineInherits : public ::testing::Test {
 protected:
  // In epoch 2, member 3 takes the partition over from member 0.
  explicit EngineInherits(uint64_t memory_cap_bytes = 0) : rig(before(), memory_cap_bytes) {
    EXPECT_TRUE(rig.take_plan().ok());
    PlanSpec after = before();
    after.epoch = 2;
    after.tensors[0].owners = {3, 3};
    after.tensors[0].moved = 2;
    rig.plan = build_plan(after);
    EXPECT_TRUE(rig.take_plan().ok());
  }
  static PlanSpec before() { return {.workers = 3, .tensors = {{.owners = {0, 0}, .accumulates = true}}}; }
  absl::Status tell(uint32_t worker, uint64_t version) { return rig.acknowledge(worker, {{.step = version}}); }
  AccumulateRig rig;
};

TEST_F(EngineInherits, ContinuesFromHighestVersion) {
  ASSERT_TRUE(tell(0, 4).ok());
  ASSERT_TRUE(tell(1, 7).ok());
  EXPECT_THAT(rig.actions.sends, IsEmpty());
  ASSERT_TRUE(tell(2, 5).ok());
  ASSERT_THAT(rig.receivers(FrameType::kFetch), ElementsAre(1));
  EXPECT_EQ(rig.actions.sends[0].header.step, 7u);
  ASSERT_TRUE(rig.hand(1, {70, 7}, {2, 4, 1}, 7).ok());
  EXPECT_THAT(rig.actions.sends, IsEmpty());
  ASSERT_TRUE(rig.add(1, 4, {1, 1}).ok());
  EXPECT_THAT(rig.answers(), ElementsAre(Answer{1, 4, {71, 8}, {2, 5, 1}}));
}

TEST_F(EngineInherits, AnswersContributionAlreadyAdded) {
  ASSERT_TRUE(rig.add(0, 1, {1000, 1000}).ok()) << "version 7 has the contribution, but the answer was lost";
  ASSERT_TRUE(rig.add(2, 1, {1, 1}).ok()) << "the contribution was lost with the earlier owner";
  EXPECT_THAT(rig.actions.sends, IsEmpty());
  EXPECT_EQ(rig.engine.counters().memory_bytes, 2 * block_size(8));
  for (const auto& [worker, version] : {std::pair{0u, 4u}, {1u, 7u}, {2u, 5u}}) ASSERT_TRUE(tell(worker, version).ok());
  ASSERT_TRUE(rig.hand(1, {70, 7}, {2, 4, 1}, 7).ok());
  EXPECT_THAT(rig.answers(), ElementsAre(Answer{0, 1, {70, 7}, {2, 4, 1}}, Answer{2, 1, {71, 8}, {2, 4, 2}}));
  EXPECT_EQ(rig.engine.counters().memory_bytes, 0u);
}

TEST_F(EngineInherits, FetchesNothingWithoutAnswers) {
  ASSERT_TRUE(rig.add(2, 0, {1, 1}).ok());
  for (uint32_t worker = 0; worker < 3; ++worker) ASSERT_TRUE(tell(worker, 0).ok());
  EXPECT_THAT(rig.receivers(FrameType::kFetch), IsEmpty());
  EXPECT_THAT(rig.answers(), ElementsAre(Answer{2, 0, {1, 1}, {0, 0, 1}}));
}

TEST_F(EngineInherits, FetchesAgainAfterReconnect) {
  for (const auto& [worker, version] : {std::pair{0u, 4u}, {1u, 7u}, {2u, 5u}}) ASSERT_TRUE(tell(worker, version).ok());
  ASSERT_TRUE(tell(2, 5).ok());
  EXPECT_THAT(rig.actions.sends, IsEmpty());
  ASSERT_TRUE(tell(1, 7).ok());
  EXPECT_THAT(rig.receivers(FrameType::kFetch), ElementsAre(1));
  ASSERT_TRUE(rig.hand(1, {70, 7}, {2, 4, 1}, 7).ok());
  ASSERT_TRUE(rig.add(1, 4, {1, 1}).ok());
  ASSERT_TRUE(rig.hand(1, {70, 7}, {2, 4, 1}, 7).ok()) << "a second copy";
  ASSERT_TRUE(rig.add(1, 5, {1, 1}).ok());
  EXPECT_THAT(rig.answers(), ElementsAre(Answer{1, 5, {72, 9}, {2, 6, 1}}));
}

TEST_F(EngineInherits, CountsMustMatchVersion) {
  for (uint32_t worker = 0; worker < 3; ++worker) ASSERT_TRUE(tell(worker, 7).ok());
  EXPECT_EQ(rig.hand(0, {70, 7}, {2, 4, 2}, 7).code(), absl::StatusCode::kInvalidArgument);
}

class EngineInheritsWithLittleMemory : public EngineInherits {
 protected:
  EngineInheritsWithLittleMemory() : EngineInherits(4 * block_size(8)) {}
};

TEST_F(EngineInheritsWithLittleMemory, DefersContributionWithoutRoom) {
  for (uint32_t worker = 0; worker < 3; ++worker) ASSERT_TRUE(rig.add(worker, 0, {1, 1}).ok());
  ASSERT_TRUE(rig.push(0, {.partition = 1}, {1, 1}, ReduceOp::kAccumulate).ok());
  EXPECT_EQ(rig.engine.counters().memory_bytes, 4 * block_size(8));
  ASSERT_TRUE(rig.push(1, {.partition = 1}, {1, 1}, ReduceOp::kAccumulate).ok());
  EXPECT_THAT(rig.receivers(FrameType::kDefer), ElementsAre(1));
  EXPECT_EQ(rig.engine.counters().memory_bytes, 4 * block_size(8));
}

}  // namespace
}  // namespace gleaner::testing
