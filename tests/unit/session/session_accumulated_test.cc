// Tests of partitions that accumulate: the checks of answers, and the answers that are kept for new owners.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/session/session_rig.h"

namespace gleaner::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using wire::FrameType;
using wire::PartitionKey;

const PlanSpec kBeforeAccumulatorMove{.tensors = {{.owners = {2}, .type = DataType::kInt32, .accumulates = true}}};
const PlanSpec kAfterAccumulatorMove{
    .epoch = 2, .tensors = {{.owners = {0}, .type = DataType::kInt32, .moved = 2, .accumulates = true}}};

// A session of worker 1 of two.
class SessionAccumulated : public ::testing::Test {
 protected:
  absl::Status answer(uint64_t step, std::byte fill, std::vector<uint64_t> counts, uint32_t epoch = 1) {
    wire::Header what = rig.header(FrameType::kResult, {.step = step});
    what.op = ReduceOp::kAccumulate;
    what.epoch = epoch;
    return rig.deliver(what, both(fill, counts));
  }
  Buffer both(std::byte fill, const std::vector<uint64_t>& counts) {
    Buffer payload = rig.pool.take(8 + counts.size() * sizeof(uint64_t));
    std::ranges::fill(payload.bytes().first(8), fill);
    std::memcpy(payload.bytes().data() + 8, counts.data(), counts.size() * sizeof(uint64_t));
    return payload;
  }
  absl::Status start() { return rig.start(0, ReduceOp::kAccumulate); }
  absl::Status fetch(uint64_t version) {
    wire::Header what = rig.header(FrameType::kFetch, {.step = version});
    return rig.deliver(what, {});
  }
  SessionRig rig{kBeforeAccumulatorMove};
};

TEST_F(SessionAccumulated, SumNeedsNoAcknowledgement) {
  ASSERT_TRUE(start().ok());
  EXPECT_EQ(rig.actions.sends.back().header.op, ReduceOp::kAccumulate);
  ASSERT_TRUE(answer(0, std::byte{0x33}, {5, 1}).ok());
  EXPECT_THAT(rig.done(), ElementsAre(100));
  EXPECT_THAT(rig.memory_of(0), ::testing::Each(std::byte{0x33}));
  rig.tick(absl::Milliseconds(20));
  EXPECT_THAT(rig.actions.sends, IsEmpty());
  EXPECT_TRUE(rig.session.idle());
}

TEST_F(SessionAccumulated, NewOwnerGetsTheAnswer) {
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(answer(0, std::byte{0x33}, {5, 1}).ok());
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(rig.apply(kAfterAccumulatorMove).ok());
  EXPECT_THAT(rig.acknowledged(0), ElementsAre(PartitionKey{6, 0, 0}));
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0, 1})) << "only the partition in flight is pushed again";
  ASSERT_TRUE(fetch(6).ok());
  ASSERT_THAT(rig.actions.sends, SizeIs(1));
  const exchange::Send& hand = rig.actions.sends[0];
  EXPECT_EQ(hand.header.type, FrameType::kHand);
  EXPECT_EQ(hand.header.op, ReduceOp::kAccumulate);
  EXPECT_EQ(hand.header.step, 6u);
  EXPECT_THAT(std::vector(hand.payload.bytes().begin(), hand.payload.bytes().end()),
              ::testing::ElementsAreArray(both(std::byte{0x33}, {5, 1}).bytes()));
  ASSERT_TRUE(answer(1, std::byte{0x44}, {5, 2}, 2).ok());
  ASSERT_TRUE(fetch(6).ok());
  EXPECT_THAT(rig.actions.sends, IsEmpty()) << "the fetch was answered before";
}

TEST_F(SessionAccumulated, EarlierOwnersFrameKeepsBytes) {
  ASSERT_TRUE(start().ok());
  Buffer queued = rig.actions.sends[0].payload;
  ASSERT_TRUE(rig.apply(kAfterAccumulatorMove).ok());
  ASSERT_TRUE(answer(0, std::byte{0x33}, {5, 1}, 2).ok());
  EXPECT_THAT(rig.done(), IsEmpty());
  queued = {};
  rig.tick();
  EXPECT_THAT(rig.done(), ElementsAre(100));
  EXPECT_THAT(rig.memory_of(0), ::testing::Each(std::byte{0x33})) << "no count is written behind the output";
}

TEST_F(SessionAccumulated, LastAnswerIsKeptForever) {
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(answer(0, std::byte{0x33}, {5, 1}).ok());
  ASSERT_TRUE(rig.release(2, 100).ok());
  EXPECT_EQ(rig.session.counters().retained_bytes, 24u);
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(answer(1, std::byte{0x33}, {9, 2}).ok());
  EXPECT_EQ(rig.session.counters().retained_bytes, 24u);
}

TEST_F(SessionAccumulated, AnswerLacksContributions) {
  ASSERT_TRUE(start().ok());
  EXPECT_THAT(std::string(answer(0, {}, {5, 0}).message()), HasSubstr("0 contributions of this worker"));
  EXPECT_FALSE(answer(0, {}, {5, 2}).ok()) << "counted twice";
  ASSERT_TRUE(answer(0, {}, {5, 1}).ok());
  ASSERT_TRUE(start().ok());
  EXPECT_FALSE(answer(1, {}, {3, 2}).ok()) << "two contributions of worker 0 are missing";
  ASSERT_TRUE(answer(1, {}, {5, 2}).ok());
}

TEST_F(SessionAccumulated, LateAnswerIsIgnored) {
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(answer(0, std::byte{0x33}, {5, 1}).ok());
  ASSERT_TRUE(answer(0, std::byte{0x44}, {6, 1}).ok());
  ASSERT_TRUE(rig.apply(kAfterAccumulatorMove).ok());
  EXPECT_THAT(rig.acknowledged(0), ElementsAre(PartitionKey{6, 0, 0}));
}

TEST_F(SessionAccumulated, OtherOpsAreErrors) {
  EXPECT_EQ(rig.start(0, ReduceOp::kSum).code(), absl::StatusCode::kInvalidArgument);
  SessionRig other({.tensors = {{.owners = {2}}}});
  EXPECT_EQ(other.start(0, ReduceOp::kAccumulate).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace gleaner::testing
