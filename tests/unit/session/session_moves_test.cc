// Tests of partitions that change their owner while they are in flight, and of results that are kept for new owners.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/session/session_rig.h"

namespace gleaner::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using wire::FrameType;
using wire::PartitionKey;

// The session is that of worker 1 of two. Partition 0 moves from CPU summer 2 to worker 0; partition 1 stays.
const PlanSpec kBeforeMove{.tensors = {{.owners = {2}}, {.owners = {2}}}};
const PlanSpec kAfterMove{.epoch = 2, .tensors = {{.owners = {0}, .moved = 2}, {.owners = {2}}}};

TEST(SessionMoves, PushesAgainToNewOwner) {
  SessionRig rig(kBeforeMove);
  ASSERT_TRUE(rig.start(0).ok());
  ASSERT_TRUE(rig.start(1).ok());
  ASSERT_TRUE(rig.apply(kAfterMove).ok());
  EXPECT_THAT(rig.acknowledged(0), ElementsAre(PartitionKey{0, 0, 0})) << "the new owner gets the version";
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0, 0}));
  EXPECT_EQ(rig.actions.sends.back().member, 0u);
  EXPECT_EQ(rig.actions.sends.back().header.epoch, 2u);
  EXPECT_EQ(rig.session.counters().moved, 1u);
  EXPECT_EQ(rig.session.counters().outstanding_bytes, 16u);
}

TEST(SessionMoves, IgnoresEarlierOwner) {
  SessionRig rig(kBeforeMove);
  ASSERT_TRUE(rig.start(0).ok());
  const wire::Header late = rig.header(FrameType::kResult, {});
  ASSERT_TRUE(rig.apply(kAfterMove).ok());
  ASSERT_TRUE(rig.deliver(late, rig.pool.take(8)).ok());
  EXPECT_THAT(rig.done(), IsEmpty());
  ASSERT_TRUE(rig.result({}, std::byte{0x33}, 2).ok());
  EXPECT_THAT(rig.done(), ElementsAre(100));
  EXPECT_THAT(rig.memory_of(0), Each(std::byte{0x33}));
}

TEST(SessionMoves, ResultMayPrecedeRepeatedPush) {
  SessionRig rig(kBeforeMove);
  ASSERT_TRUE(rig.start(0).ok());
  rig.session.on_disconnected(0);
  ASSERT_TRUE(rig.apply(kAfterMove).ok());
  EXPECT_THAT(rig.pushed(), IsEmpty());
  ASSERT_TRUE(rig.result({}, {}, 2).ok()) << "another worker gave the result to the new owner";
  EXPECT_THAT(rig.done(), ElementsAre(100));
}

TEST(SessionMoves, EarlierOwnersFrameKeepsBytes) {
  SessionRig rig(kBeforeMove);
  std::ranges::fill(rig.memory_of(0), std::byte{0x42});
  ASSERT_TRUE(rig.start(0).ok());
  Buffer queued = rig.actions.sends[0].payload;
  ASSERT_TRUE(rig.apply(kAfterMove).ok());
  ASSERT_TRUE(rig.result({}, std::byte{0x33}, 2).ok());
  EXPECT_THAT(queued.bytes(), Each(std::byte{0x42})) << "the queued frame still needs the input";
  EXPECT_THAT(rig.done(), IsEmpty());
  queued = {};
  rig.tick();
  EXPECT_THAT(rig.done(), ElementsAre(100));
  EXPECT_THAT(rig.memory_of(0), Each(std::byte{0x33}));
}

TEST(SessionMoves, PlaceOfLostSummerRefilled) {
  SessionRig rig(kBeforeMove);
  ASSERT_TRUE(rig.start(1).ok());
  rig.session.on_disconnected(2);
  ASSERT_TRUE(
      rig.apply({.summers = 0, .epoch = 2, .tensors = {{.owners = {0}, .moved = 2}, {.owners = {1}, .moved = 2}}})
          .code() == absl::StatusCode::kFailedPrecondition)
      << "places stay";
  ASSERT_TRUE(rig.apply({.epoch = 2, .tensors = {{.owners = {0}, .moved = 2}, {.owners = {1}, .moved = 2}}}).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{1, 0, 0}));
}

class SessionRetention : public ::testing::Test {
 protected:
  SessionRetention() {
    EXPECT_TRUE(rig.start(0).ok());
    EXPECT_TRUE(rig.result({}, std::byte{0x33}).ok());
    rig.tick();
  }
  absl::Status fetch(uint64_t step) {
    wire::Header header = rig.header(FrameType::kFetch, {.step = step});
    return rig.deliver(header, {});
  }
  SessionRig rig{kBeforeMove};
};

TEST_F(SessionRetention, HandsResultToNewOwner) {
  ASSERT_TRUE(rig.apply(kAfterMove).ok());
  EXPECT_THAT(rig.acknowledged(0), ElementsAre(PartitionKey{1, 0, 0}));
  ASSERT_TRUE(fetch(0).ok());
  ASSERT_THAT(rig.actions.sends, SizeIs(1));
  EXPECT_EQ(rig.actions.sends[0].header.type, FrameType::kHand);
  EXPECT_EQ(rig.actions.sends[0].header.step, 0u);
  EXPECT_EQ(rig.actions.sends[0].member, 0u);
  EXPECT_THAT(rig.actions.sends[0].payload.bytes(), Each(std::byte{0x33}));
}

TEST_F(SessionRetention, KeepsResultUntilReleased) {
  EXPECT_EQ(rig.session.counters().retained_bytes, 8u);
  EXPECT_FALSE(rig.session.idle());
  ASSERT_TRUE(rig.release(2, 0).ok());
  EXPECT_EQ(rig.session.counters().retained_bytes, 8u);
  ASSERT_TRUE(rig.release(2, 1).ok());
  EXPECT_EQ(rig.session.counters().retained_bytes, 0u);
  EXPECT_TRUE(rig.session.idle());
}

TEST_F(SessionRetention, KeepsOnlyTheLastResult) {
  ASSERT_TRUE(rig.start(0).ok());
  ASSERT_TRUE(rig.result({.step = 1}, std::byte{0x44}).ok());
  EXPECT_EQ(rig.session.counters().retained_bytes, 8u);
}

TEST_F(SessionRetention, OwnerAheadReleasesNothing) {
  wire::Header header = rig.header(FrameType::kRelease, {});
  header = {.type = FrameType::kRelease, .job = kJob, .epoch = 2, .sender = 2, .confirmed = 1};
  ASSERT_TRUE(rig.deliver(header, {}).ok());
  EXPECT_EQ(rig.session.counters().retained_bytes, 8u) << "the owner may have lost the partition";
}

TEST_F(SessionRetention, QuietSessionAsksForRelease) {
  rig.tick(absl::Milliseconds(5));
  ASSERT_THAT(rig.actions.sends, SizeIs(1));
  EXPECT_EQ(rig.actions.sends[0].header.type, FrameType::kRelease);
  EXPECT_EQ(rig.actions.sends[0].member, 2u);
  EXPECT_TRUE(rig.actions.sends[0].payload.empty()) << "the owner knows the numbers of its results";
  rig.tick(absl::Milliseconds(5));
  EXPECT_THAT(rig.actions.sends, IsEmpty()) << "the session does not ask with every tick";
}

TEST_F(SessionRetention, AsksLaterOwnerByKeys) {
  ASSERT_TRUE(rig.apply(kAfterMove).ok());
  rig.tick(absl::Milliseconds(5));
  ASSERT_THAT(rig.actions.sends, SizeIs(1));
  EXPECT_EQ(rig.actions.sends[0].member, 0u);
  EXPECT_EQ(rig.actions.sends[0].payload.size(), sizeof(PartitionKey));
  ASSERT_TRUE(rig.release(0, 0, {{1, 0, 0}}).ok());
  EXPECT_TRUE(rig.session.idle());
}

TEST_F(SessionRetention, AsksNothingAtTheEnd) {
  rig.session.set_ending({});
  EXPECT_TRUE(rig.session.idle());
}

}  // namespace
}  // namespace gleaner::testing
