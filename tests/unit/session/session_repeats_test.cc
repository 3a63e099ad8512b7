// Tests of repeated pushes and repeated acknowledgements: after reconnects, deferrals and late duplicates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/session/session_rig.h"

namespace gleaner::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using wire::PartitionKey;

const PlanSpec kThree{.tensors = {{.owners = {2, 2, 0}}}};

TEST(SessionReconnect, PushesOutstandingPartitionsAgain) {
  SessionRig rig(kThree);
  ASSERT_TRUE(rig.start(0).ok());
  ASSERT_TRUE(rig.result({0, 1}).ok());
  rig.reconnect(2);
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0}));
  EXPECT_EQ(rig.session.counters().repeated_pushes, 1u);
  EXPECT_EQ(rig.session.counters().outstanding_bytes, 16u);
}

TEST(SessionReconnect, OutstandingPartitionsLeaveTheWindow) {
  SessionRig rig({.tensors = {{.owners = {2, 2, 0, 0}}}}, 16);
  ASSERT_TRUE(rig.start(0).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0}, Key{0, 1}));
  rig.session.on_disconnected(2);
  rig.tick();
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 2}, Key{0, 3}));
}

TEST(SessionReconnect, ResultMayPrecedeRepeatedPush) {
  SessionRig rig({.tensors = {{.owners = {2, 2, 2}}}}, 16);
  ASSERT_TRUE(rig.start(0).ok());
  rig.session.on_disconnected(2);
  ASSERT_TRUE(rig.result({0, 1}).ok());
  rig.connect(2);
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0}, Key{0, 2})) << "partition 1 is done";
}

TEST(SessionReconnect, RepeatedPushKeepsContribution) {
  SessionRig rig({.tensors = {{.owners = {2}}}});
  std::ranges::fill(rig.memory_of(0), std::byte{0x42});
  ASSERT_TRUE(rig.start(0).ok());
  rig.reconnect(2);
  ASSERT_THAT(rig.actions.sends, SizeIs(1));
  const Buffer queued = rig.actions.sends[0].payload;
  ASSERT_TRUE(rig.result({}, std::byte{0x11}).ok());
  EXPECT_THAT(rig.memory_of(0), Each(std::byte{0x11}));
  EXPECT_THAT(queued.bytes(), Each(std::byte{0x42}));
  EXPECT_THAT(rig.done(), ElementsAre(100)) << "the sent copy does not refer to the input";
}

TEST(SessionReconnect, AcknowledgesLatestResultsAgain) {
  SessionRig rig(kThree);
  for (uint64_t step = 0; step < 2; ++step) {
    ASSERT_TRUE(rig.start(0).ok());
    for (uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(rig.result({0, i, step}).ok());
  }
  ASSERT_TRUE(rig.start(0).ok());
  ASSERT_TRUE(rig.result({0, 1, 2}).ok());
  rig.reconnect(2);
  EXPECT_THAT(rig.acknowledged(2), ElementsAre(PartitionKey{2, 0, 0}, PartitionKey{3, 0, 1}));
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0, 2}));
}

TEST(SessionAcks, LeaveWithTheNextPush) {
  SessionRig rig({.tensors = {{.owners = {2, 2, 0}}, {.owners = {0, 2}}}});
  ASSERT_TRUE(rig.start(0).ok());
  ASSERT_TRUE(rig.result({0, 0}).ok());
  ASSERT_TRUE(rig.result({0, 1}).ok());
  EXPECT_THAT(rig.actions.sends, IsEmpty());
  ASSERT_TRUE(rig.start(1).ok());
  EXPECT_THAT(rig.acknowledged(2), ElementsAre(PartitionKey{1, 0, 0}, PartitionKey{1, 0, 1}));
  ASSERT_THAT(rig.actions.sends, SizeIs(3)) << "one frame has all keys";
  EXPECT_EQ(rig.actions.sends[0].header.type, wire::FrameType::kPush) << "the push goes to another owner";
  EXPECT_EQ(rig.actions.sends[1].header.type, wire::FrameType::kAck) << "the acknowledgement precedes the push";
}

TEST(SessionAcks, LeaveWithTheTick) {
  SessionRig rig(kThree);
  ASSERT_TRUE(rig.start(0).ok());
  ASSERT_TRUE(rig.result({0, 0}).ok());
  rig.tick();
  EXPECT_THAT(rig.acknowledged(2), ElementsAre(PartitionKey{1, 0, 0}));
  rig.tick();
  EXPECT_THAT(rig.actions.sends, IsEmpty());
}

TEST(SessionAcks, LeaveInFramesOf64) {
  SessionRig rig({.tensors = {{.owners = std::vector<uint32_t>(100, 2)}}});
  ASSERT_TRUE(rig.start(0).ok());
  for (uint32_t i = 0; i < 63; ++i) {
    ASSERT_TRUE(rig.result({0, i}).ok());
    EXPECT_THAT(rig.actions.sends, IsEmpty());
  }
  ASSERT_TRUE(rig.result({0, 63}).ok());
  EXPECT_THAT(rig.acknowledged(2), SizeIs(64));
}

TEST(SessionAcks, LateCopyIsAcknowledgedAgain) {
  SessionRig rig(kThree);
  ASSERT_TRUE(rig.start(0).ok());
  for (uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(rig.result({0, i}).ok());
  rig.tick();
  ASSERT_TRUE(rig.result({0, 0}, std::byte{0x99}).ok());
  rig.tick();
  EXPECT_THAT(rig.acknowledged(2), ElementsAre(PartitionKey{1, 0, 0}));
  EXPECT_THAT(rig.memory_of(0), Each(std::byte{0x11}));
  EXPECT_EQ(rig.session.counters().duplicate_results, 1u);
  ASSERT_TRUE(rig.start(0).ok());
  ASSERT_TRUE(rig.result({0, 0, 0}, std::byte{0x99}).ok());
  EXPECT_THAT(rig.memory_of(0), Each(std::byte{0x11})) << "the result belongs to the previous step";
}

TEST(SessionAcks, SessionIsBusyUntilSent) {
  SessionRig rig({.tensors = {{.owners = {2}}}});
  ASSERT_TRUE(rig.start(0).ok());
  rig.session.on_disconnected(2);
  ASSERT_TRUE(rig.result({}).ok());
  EXPECT_FALSE(rig.session.idle());
  rig.connect(2);
  EXPECT_THAT(rig.acknowledged(2), SizeIs(1));
  EXPECT_FALSE(rig.session.idle()) << "another worker may lack the result if the owner is lost";
  ASSERT_TRUE(rig.release(2, 1).ok());
  EXPECT_TRUE(rig.session.idle());
}

TEST(SessionAcks, NotDueToLeftWorkers) {
  SessionRig rig({.tensors = {{.owners = {0, 2}}}});
  ASSERT_TRUE(rig.start(0).ok());
  for (uint32_t i = 0; i < 2; ++i) ASSERT_TRUE(rig.result({0, i}).ok());
  rig.tick();
  ASSERT_TRUE(rig.result({0, 0}).ok());  // a duplicate
  rig.session.on_disconnected(0);
  rig.session.set_ending({});
  EXPECT_TRUE(rig.session.idle());
  ASSERT_TRUE(rig.result({0, 1}).ok());
  EXPECT_FALSE(rig.session.idle()) << "present workers are still acknowledged";
  rig.tick();
  EXPECT_TRUE(rig.session.idle());
}

TEST(SessionDefers, RetriesWithDoublingPauses) {
  SessionRig rig({.tensors = {{.owners = {2, 2}}}}, 8);
  ASSERT_TRUE(rig.start(0).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0}));
  ASSERT_TRUE(rig.defer({0, 0}).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 1}));
  ASSERT_TRUE(rig.defer({0, 1}).ok());
  EXPECT_EQ(rig.session.counters().outstanding_bytes, 0u);
  absl::Duration pause = kRetry;
  for (int i = 0; i < 3; ++i, pause *= 2) {
    rig.tick(pause - absl::Microseconds(1));
    EXPECT_THAT(rig.pushed(), IsEmpty());
    rig.tick(absl::Microseconds(1));
    EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0}));
    ASSERT_TRUE(rig.defer({0, 0}).ok());
    EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 1}));
    ASSERT_TRUE(rig.defer({0, 1}).ok());
  }
  EXPECT_EQ(rig.session.counters().deferred, 8u);
  EXPECT_EQ(rig.session.counters().repeated_pushes, 6u);
}

TEST(SessionDefers, ResultRetriesMostUrgentPartition) {
  SessionRig rig({.tensors = {{.owners = {2, 2, 2}}, {.owners = {0}}}});
  ASSERT_TRUE(rig.start(0).ok());
  ASSERT_TRUE(rig.start(1).ok());
  ASSERT_TRUE(rig.defer({0, 2}).ok());
  ASSERT_TRUE(rig.defer({0, 1}).ok());
  ASSERT_TRUE(rig.result({1, 0}).ok());
  EXPECT_THAT(rig.pushed(), IsEmpty()) << "another owner's";
  ASSERT_TRUE(rig.result({0, 0}).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 1}));
}

TEST(SessionDefers, NeverDeferredGoFirst) {
  // The owner has begun to sum partition 2 and waits for it. Partitions 0 and 1 are more urgent, but are deferred again
  // and again.
  SessionRig rig({.tensors = {{.owners = {2, 2, 2}}}}, 8);
  ASSERT_TRUE(rig.start(0).ok());
  ASSERT_TRUE(rig.defer({0, 0}).ok());
  rig.now += kRetry;
  rig.tick();  // 0 may be sent again, while 1 is in flight
  ASSERT_TRUE(rig.defer({0, 1}).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 2}));
}

TEST(SessionDefers, LongestDeferredGoFirst) {
  // The owner waits for tensor 0, and defers tensor 1 again and again.
  SessionRig rig({.tensors = {{.owners = {2}}, {.owners = {2, 2}}}}, 8);
  ASSERT_TRUE(rig.start(0).ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(rig.defer({0, 0}).ok());
    rig.tick(64 * kRetry);
    EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0}));
  }
  ASSERT_TRUE(rig.defer({0, 0}).ok());
  ASSERT_TRUE(rig.start(1).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{1, 0}));
  ASSERT_TRUE(rig.defer({1, 0}).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{1, 1}));
  rig.tick(64 * kRetry);  // both others may be sent again, and the window grows by one partition
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0})) << "the partition was deferred more often but longer ago";
}

TEST(SessionDefers, CrossingAnswersAreHarmless) {
  SessionRig rig(kThree);
  ASSERT_TRUE(rig.start(0).ok());
  ASSERT_TRUE(rig.defer({0, 0}).ok());
  ASSERT_TRUE(rig.result({0, 0}).ok()) << "another copy of the push was accepted";
  ASSERT_TRUE(rig.defer({0, 0}).ok()) << "one more copy was deferred";
  rig.tick(absl::Seconds(1));
  EXPECT_THAT(rig.pushed(), IsEmpty());
  EXPECT_EQ(rig.session.counters().deferred, 1u);
}

}  // namespace
}  // namespace gleaner::testing
