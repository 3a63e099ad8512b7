// Tests of pieces from their start to their end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/status_codes.h"
#include "tests/unit/session/session_rig.h"

namespace gleaner::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const PlanSpec kPlan{.epoch = 5,
                     .tensors = {{.owners = {2, 0}}, {.owners = {2}, .type = DataType::kInt32}, {.owners = {}}}};

TEST(SessionPieces, PushesToEachOwner) {
  SessionRig rig(kPlan);
  std::ranges::fill(rig.memory_of(0), std::byte{0x42});
  ASSERT_TRUE(rig.start(0, ReduceOp::kAverage).ok());
  ASSERT_EQ(rig.actions.sends.size(), 2u);
  for (uint32_t i = 0; i < 2; ++i) {
    const exchange::Send& send = rig.actions.sends[i];
    EXPECT_EQ(send.member, i == 0 ? 2u : 0u);
    EXPECT_EQ(send.header.type, wire::FrameType::kPush);
    EXPECT_EQ(send.header.data_type, DataType::kFloat32);
    EXPECT_EQ(send.header.op, ReduceOp::kAverage);
    EXPECT_EQ(send.header.job, kJob);
    EXPECT_EQ(send.header.epoch, 5u);
    EXPECT_EQ(send.header.sender, 1u);
    EXPECT_EQ(send.header.tensor, 0u);
    EXPECT_EQ(send.header.partition, i);
    EXPECT_EQ(send.header.step, 0u);
    EXPECT_EQ(send.header.payload_bytes, 8u);
    EXPECT_EQ(send.payload.size(), 8u);
    EXPECT_EQ(send.payload.bytes().data(), rig.memory_of(0).data() + 8 * i) << "sent from the caller's memory";
  }
  EXPECT_EQ(rig.session.counters().outstanding_bytes, 16u);
  EXPECT_FALSE(rig.session.idle());
}

TEST(SessionPieces, HalvesArePushedAsFloat32) {
  SessionRig rig({.local_ranks = 2, .tensors = {{.owners = {2, 0}, .bytes = 4, .type = DataType::kBFloat16}}});
  std::vector<std::byte> input(16), output(8);
  const auto start = [&](MutableBytes in, MutableBytes out) {
    rig.clear();
    return rig.session.start({.id = 1, .input = Buffer::borrow(in), .output = out}, rig.now, rig.actions);
  };
  EXPECT_THAT(std::string(start(output, output).message()), HasSubstr("16 bytes of input and 8 of output"));
  EXPECT_THAT(std::string(start(input, std::span(input).first(8)).message()), HasSubstr("overlap in part"));
  ASSERT_TRUE(start(input, output).ok());
  ASSERT_EQ(rig.actions.sends.size(), 2u);
  for (uint32_t i = 0; i < 2; ++i) {
    const exchange::Send& send = rig.actions.sends[i];
    EXPECT_EQ(send.header.data_type, DataType::kFloat32);
    EXPECT_EQ(send.header.payload_bytes, 8u);
    EXPECT_EQ(send.payload.bytes().data(), input.data() + 8 * i);
  }
  EXPECT_EQ(rig.session.counters().outstanding_bytes, 16u);
  ASSERT_TRUE(rig.result({.partition = 0}, std::byte{0x11}).ok());
  ASSERT_TRUE(rig.result({.partition = 1}, std::byte{0x22}).ok());
  EXPECT_THAT(rig.done(), ElementsAre(1));
  EXPECT_THAT(std::span(output).first(4), Each(std::byte{0x11}));
  EXPECT_THAT(std::span(output).last(4), Each(std::byte{0x22}));
  EXPECT_EQ(rig.session.counters().outstanding_bytes, 0u);
}

TEST(SessionPieces, DoneWithLastResult) {
  SessionRig rig(kPlan);
  std::vector<std::byte> output(16);
  ASSERT_TRUE(rig.start(0, ReduceOp::kSum, output).ok());
  ASSERT_TRUE(rig.result({.partition = 1}, std::byte{0x22}, 5).ok());
  EXPECT_THAT(rig.done(), IsEmpty());
  ASSERT_TRUE(rig.result({.partition = 0}, std::byte{0x11}, 5).ok());
  EXPECT_THAT(rig.done(), ElementsAre(100));
  EXPECT_TRUE(rig.actions.done[0].status.ok());
  EXPECT_THAT(std::span(output).first(8), Each(std::byte{0x11}));
  EXPECT_THAT(std::span(output).last(8), Each(std::byte{0x22}));
  EXPECT_FALSE(rig.session.idle()) << "the results are not acknowledged yet";
  rig.tick();
  ASSERT_TRUE(rig.release(2, 1).ok());
  EXPECT_TRUE(rig.session.idle());
  EXPECT_EQ(rig.session.counters().outstanding_bytes, 0u);
}

TEST(SessionPieces, PartsAreSeparatePieces) {
  SessionRig rig({.tensors = {{.owners = {2, 0, 2, 0}}}});  // 8 bytes each
  std::vector<std::byte> head(8, std::byte{1}), tail(24, std::byte{2});
  const auto part = [&](std::vector<std::byte>& memory, uint64_t id, uint32_t first, uint32_t count) {
    rig.clear();
    return rig.session.start({.id = id,
                              .tensor = 0,
                              .op = ReduceOp::kSum,
                              .input = Buffer::borrow(memory),
                              .output = MutableBytes(memory),
                              .first = first,
                              .count = count},
                             rig.now, rig.actions);
  };
  ASSERT_TRUE(part(tail, 7, 1, 3).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 1}, Key{0, 2}, Key{0, 3}));
  EXPECT_THAT(rig.actions.sends[1].payload.bytes(), Each(std::byte{2})) << "the part is sent from its own memory";
  EXPECT_TRUE(absl::IsFailedPrecondition(part(head, 8, 3, 1))) << "in flight";
  EXPECT_TRUE(absl::IsInvalidArgument(part(head, 8, 5, 1))) << "the partition does not exist";
  ASSERT_TRUE(part(head, 9, 0, 1).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0}));
  ASSERT_TRUE(rig.result({0, 0}, std::byte{3}).ok());
  EXPECT_THAT(rig.done(), ElementsAre(9));
  EXPECT_THAT(head, Each(std::byte{3}));
  ASSERT_TRUE(part(head, 10, 0, 1).ok()) << "one part starts the next step while the other is one step behind";
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0, 1}));
  for (uint32_t i = 1; i < 4; ++i) ASSERT_TRUE(rig.result({0, i}, std::byte{4}).ok());
  EXPECT_THAT(rig.done(), ElementsAre(7));
  EXPECT_THAT(tail, Each(std::byte{4}));
}

TEST(SessionPieces, AwaitedResultsAreProgress) {
  SessionRig rig({.tensors = {{.owners = {2, 2}}}});
  ASSERT_TRUE(rig.start(0).ok());
  EXPECT_FALSE(rig.actions.has_progressed);
  ASSERT_TRUE(rig.defer({0, 1}).ok());
  EXPECT_FALSE(rig.actions.has_progressed);
  ASSERT_TRUE(rig.result({0, 0}).ok());
  EXPECT_TRUE(rig.actions.has_progressed);
  ASSERT_TRUE(rig.result({0, 0}).ok());
  EXPECT_FALSE(rig.actions.has_progressed) << "the worker has this result already";
}

TEST(SessionPieces, StepsCountPerTensor) {
  SessionRig rig(kPlan);
  for (uint64_t step = 0; step < 3; ++step) {
    ASSERT_TRUE(rig.start(1).ok());
    EXPECT_THAT(rig.pushed(), ElementsAre(Key{1, 0, step}));
    ASSERT_TRUE(rig.result({1, 0, step}, {}, 5).ok());
  }
  ASSERT_TRUE(rig.start(0).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0, 0}, Key{0, 1, 0}));
}

TEST(SessionPieces, WaitsForFramesOfInput) {
  SessionRig rig(kPlan);
  ASSERT_TRUE(rig.start(1).ok());
  Buffer queued = rig.actions.sends[0].payload;
  ASSERT_TRUE(rig.result({.tensor = 1}, {}, 5).ok());
  EXPECT_THAT(rig.done(), IsEmpty());
  EXPECT_EQ(rig.start(1).code(), kWrongTime);
  rig.tick();
  EXPECT_THAT(rig.done(), IsEmpty());
  queued = {};
  rig.tick();
  EXPECT_THAT(rig.done(), ElementsAre(101));
}

TEST(SessionPieces, EmptyTensorIsDone) {
  SessionRig rig(kPlan);
  ASSERT_TRUE(rig.start(2).ok());
  EXPECT_THAT(rig.done(), ElementsAre(102));
  EXPECT_THAT(rig.actions.sends, IsEmpty());
}

TEST(SessionPieces, InvalidPiecesAreRefused) {
  SessionRig rig(kPlan);
  std::vector<std::byte> memory(64);
  const auto start = [&](uint32_t tensor, size_t input, size_t output_at, size_t output, ReduceOp op) {
    return rig.session.start({.tensor = tensor,
                              .op = op,
                              .input = Buffer::borrow(MutableBytes(memory).first(input)),
                              .output = MutableBytes(memory).subspan(output_at, output)},
                             rig.now, rig.actions);
  };
  EXPECT_EQ(start(3, 16, 0, 16, ReduceOp::kSum).code(), kInvalid);
  EXPECT_EQ(start(0, 8, 0, 16, ReduceOp::kSum).code(), kInvalid);
  EXPECT_EQ(start(0, 16, 0, 8, ReduceOp::kSum).code(), kInvalid);
  EXPECT_EQ(start(0, 16, 4, 16, ReduceOp::kSum).code(), kInvalid) << "overlapping in part";
  EXPECT_EQ(start(1, 8, 8, 8, ReduceOp::kAverage).code(), kInvalid) << "integers have no average";
  EXPECT_EQ(start(0, 16, 16, 16, static_cast<ReduceOp>(0)).code(), kInvalid);
  EXPECT_TRUE(start(0, 16, 16, 16, ReduceOp::kSum).ok());
  EXPECT_EQ(start(0, 16, 16, 16, ReduceOp::kSum).code(), kWrongTime);
}

TEST(SessionPlans, MayAddTensors) {
  SessionRig rig(kPlan);
  PlanSpec more = kPlan;
  more.tensors.push_back({.owners = {0}, .since = 6});
  EXPECT_EQ(rig.apply(more).code(), kWrongTime) << "the same epoch";
  more.epoch = 6;
  ASSERT_TRUE(rig.start(0).ok());
  ASSERT_TRUE(rig.apply(more).ok());
  ASSERT_TRUE(rig.start(3).ok());
  EXPECT_EQ(rig.actions.sends.at(0).header.epoch, 6u);
  ASSERT_TRUE(rig.result({.partition = 0}, {}, 5).ok()) << "the result belongs to the previous epoch";
  PlanSpec moved = more;
  moved.epoch = 7;
  moved.tensors[0].owners = {0, 2};
  EXPECT_EQ(rig.apply(moved).code(), kWrongTime) << "the plan lacks the epoch of the move";
}

TEST(SessionFailure, EndsLaterPiecesToo) {
  SessionRig rig(kPlan);
  ASSERT_TRUE(rig.start(0).ok());
  ASSERT_TRUE(rig.start(1).ok());
  rig.clear();
  rig.session.fail(absl::UnavailableError("summer/0 is lost"), rig.actions);
  EXPECT_THAT(rig.done(), ElementsAre(100, 101));
  EXPECT_EQ(rig.actions.done[0].status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(rig.session.idle());
  EXPECT_EQ(rig.session.counters().outstanding_bytes, 0u);
  ASSERT_TRUE(rig.start(1).ok());
  EXPECT_THAT(rig.done(), ElementsAre(101));
  EXPECT_THAT(std::string(rig.actions.done[0].status.message()), HasSubstr("summer/0"));
  EXPECT_TRUE(rig.result({}).ok()) << "later frames are ignored";
  EXPECT_THAT(rig.actions.sends, IsEmpty());
}

TEST(SessionWaiting, NamesMostOverdueFirst) {
  SessionRig rig({.tensors = {{.owners = {2, 0}}, {.owners = {1}}, {.owners = {2}}}});
  EXPECT_THAT(rig.session.waiting_for(), IsEmpty());
  ASSERT_TRUE(rig.start(0).ok());
  rig.now += absl::Seconds(1);
  ASSERT_TRUE(rig.start(1).ok());
  EXPECT_THAT(rig.session.waiting_for(), ElementsAre(0, 2, 1));
  rig.now += absl::Seconds(1);
  ASSERT_TRUE(rig.start(2).ok());
  ASSERT_TRUE(rig.result({.tensor = 0, .partition = 0}).ok());
  EXPECT_THAT(rig.session.waiting_for(), ElementsAre(0, 1, 2));
  ASSERT_TRUE(rig.result({.tensor = 0, .partition = 1}).ok());
  EXPECT_THAT(rig.session.waiting_for(), ElementsAre(1, 2));
}

TEST(SessionWaiting, NamesUnconnectedOwner) {
  SessionRig rig({.tensors = {{.owners = {2}}}}, 1 << 20, false);
  ASSERT_TRUE(rig.start(0).ok());
  EXPECT_THAT(rig.actions.sends, IsEmpty());
  EXPECT_THAT(rig.session.waiting_for(), ElementsAre(2));
}

}  // namespace
}  // namespace gleaner::testing
