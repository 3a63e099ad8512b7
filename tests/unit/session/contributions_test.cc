#include "comm-lib/session/contributions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/plans.h"

namespace gleaner::testing {
namespace {

using session::Contributions;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::FrameType;

// The contributions of worker 1 to a tensor of two partitions of 8 bytes, which summer 2 owns.
class ContributionsTest : public ::testing::Test {
 protected:
  ContributionsTest() {
    EXPECT_EQ(apply({.tensors = {{.owners = {2, 2}}}}), 0u);
    for (uint32_t owner = 0; owner < 3; ++owner) contributions_.connect(owner);
  }
  uint32_t apply(const PlanSpec& spec) { return contributions_.apply(build_plan(spec), now_); }
  absl::Status start() {
    return contributions_.start(
        {.id = 5, .op = ReduceOp::kSum, .input = Buffer::borrow(memory_), .output = MutableBytes(memory_)}, now_);
  }
  // Pushes all partitions that may be pushed, and returns their frames.
  std::vector<Contributions::Push> push_all(uint64_t step = 0) {
    std::vector<Contributions::Push> pushes;
    while (const auto next = contributions_.next(now_)) pushes.push_back(contributions_.push(*next, step, now_));
    return pushes;
  }
  absl::Status check_answer(FrameType type, uint32_t partition, uint64_t step = 0) const {
    wire::Header header;
    header.type = type;
    header.sender = 2;
    header.data_type = DataType::kFloat32;
    header.op = ReduceOp::kSum;
    header.partition = partition;
    header.step = step;
    return contributions_.check_answer(partition, 0, header);
  }
  void take_result(uint32_t partition) {
    Buffer result = pool_.take(8);
    std::ranges::fill(result.bytes(), std::byte{0x11});
    contributions_.take_result(partition, result, now_);
  }
  std::vector<uint64_t> completed() {
    std::vector<exchange::Done> done;
    contributions_.complete(done);
    std::vector<uint64_t> ids;
    for (const exchange::Done& each : done) ids.push_back(each.id);
    return ids;
  }

  absl::Duration now_ = absl::Seconds(1);
  BufferPool pool_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(16, std::byte{0x42});
  Contributions contributions_{
      {.job = 7, .worker = 1}, session::SendQueue(1 << 20, 1, absl::Seconds(1), absl::Milliseconds(2)), &pool_};
};

TEST_F(ContributionsTest, PushesEachPartitionOnce) {
  ASSERT_TRUE(start().ok());
  const std::vector<Contributions::Push> pushes = push_all(3);
  ASSERT_EQ(pushes.size(), 2u);
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_FALSE(pushes[i].is_repeated);
    EXPECT_EQ(pushes[i].send.member, 2u);
    EXPECT_EQ(pushes[i].send.header.type, FrameType::kPush);
    EXPECT_EQ(pushes[i].send.header.partition, i);
    EXPECT_EQ(pushes[i].send.header.step, 3u);
    EXPECT_EQ(pushes[i].send.payload.bytes().data(), memory_.data() + 8 * i) << "sent from the caller's memory";
  }
  EXPECT_EQ(contributions_.next(now_), std::nullopt);
}

TEST_F(ContributionsTest, RepeatedPushIsACopy) {
  ASSERT_TRUE(start().ok());
  push_all();
  take_result(0);
  contributions_.disconnect(2);
  contributions_.connect(2);
  const std::vector<Contributions::Push> pushes = push_all();
  ASSERT_EQ(pushes.size(), 1u);
  EXPECT_TRUE(pushes[0].is_repeated);
  take_result(1);
  EXPECT_THAT(pushes[0].send.payload.bytes(), Each(std::byte{0x42}));
  EXPECT_THAT(memory_, Each(std::byte{0x11}));
}

TEST_F(ContributionsTest, PieceInFlightStartsOnce) {
  ASSERT_TRUE(start().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(start()));
  push_all();
  take_result(0);
  EXPECT_THAT(completed(), IsEmpty());
  take_result(1);
  EXPECT_THAT(completed(), ElementsAre(5));
  EXPECT_TRUE(start().ok());
}

TEST_F(ContributionsTest, OnlyAwaitedPartitionsAreAnswered) {
  EXPECT_TRUE(absl::IsFailedPrecondition(check_answer(FrameType::kResult, 0))) << "no piece is in flight";
  ASSERT_TRUE(start().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(check_answer(FrameType::kDefer, 0))) << "not pushed";
  push_all();
  EXPECT_TRUE(check_answer(FrameType::kDefer, 0).ok());
  EXPECT_TRUE(check_answer(FrameType::kResult, 0).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(check_answer(FrameType::kResult, 0, 1))) << "another step";
  take_result(0);
  EXPECT_TRUE(absl::IsFailedPrecondition(check_answer(FrameType::kResult, 0)));
}

TEST_F(ContributionsTest, DeferredPushWaits) {
  ASSERT_TRUE(start().ok());
  push_all();
  EXPECT_TRUE(contributions_.defer(1, now_));
  EXPECT_FALSE(contributions_.defer(1, now_)) << "another copy was deferred";
  EXPECT_THAT(push_all(), IsEmpty());
  now_ += absl::Milliseconds(2);
  contributions_.tick(now_);
  EXPECT_EQ(push_all().size(), 1u);
}

TEST_F(ContributionsTest, MovedPartitionIsPushedAgain) {
  ASSERT_TRUE(start().ok());
  std::vector<Contributions::Push> first = push_all();
  take_result(0);
  EXPECT_EQ(apply({.epoch = 2, .tensors = {{.owners = {0, 0}, .moved = 2}}}), 1u) << "the other has its result";
  const std::vector<Contributions::Push> second = push_all();
  ASSERT_EQ(second.size(), 1u);
  EXPECT_TRUE(second[0].is_repeated);
  EXPECT_EQ(second[0].send.member, 0u);
  EXPECT_EQ(second[0].send.header.epoch, 2u);
  take_result(1);
  EXPECT_EQ(memory_[8], std::byte{0x42}) << "the frame to the earlier owner refers to the input";
  first.clear();
  EXPECT_THAT(completed(), ElementsAre(5));
  EXPECT_EQ(memory_[8], std::byte{0x11});
}

TEST_F(ContributionsTest, FailEndsAllPieces) {
  ASSERT_TRUE(start().ok());
  std::vector<exchange::Done> done;
  contributions_.fail(absl::AbortedError("why"), done);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, absl::AbortedError("why"));
  EXPECT_THAT(push_all(), IsEmpty());
  EXPECT_EQ(contributions_.pieces().in_flight(), 0u);
}

}  // namespace
}  // namespace gleaner::testing
