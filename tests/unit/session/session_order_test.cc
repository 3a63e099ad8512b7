// Tests of the order in which partitions are sent: priorities, window, credit, stalls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/session/session_rig.h"

namespace gleaner::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(SessionOrder, PriorityThenPosition) {
  SessionRig rig({.tensors = {{.owners = {2, 2}, .priority = 5}, {.owners = {2, 2}, .priority = -1}}}, 1 << 20, false);
  ASSERT_TRUE(rig.start(0).ok());
  ASSERT_TRUE(rig.start(1).ok());
  rig.connect(2);
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{1, 0}, Key{1, 1}, Key{0, 0}, Key{0, 1}));
}

TEST(SessionOrder, UrgentPartitionOvertakes) {
  SessionRig rig({.tensors = {{.owners = {2, 0, 2, 0}, .priority = 1}, {.owners = {2}, .priority = 0}}}, 16);
  ASSERT_TRUE(rig.start(0).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0}, Key{0, 1}));
  ASSERT_TRUE(rig.start(1).ok());
  EXPECT_THAT(rig.pushed(), IsEmpty());
  ASSERT_TRUE(rig.result({0, 1}).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{1, 0}));
  ASSERT_TRUE(rig.result({1, 0}).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 2}, Key{0, 3})) << "the owner has {0, 0}, too";
}

TEST(SessionOrder, OversizedPartitionIsSentAlone) {
  SessionRig rig({.tensors = {{.owners = {2, 0}, .bytes = 400}}}, 1);
  ASSERT_TRUE(rig.start(0).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0}));
  ASSERT_TRUE(rig.result({0, 0}).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 1}));
}

TEST(SessionOrder, SkipsOwnerWithoutCredit) {
  // Owner 2 owns 1/4 of the bytes, so its credit is 1/2 of the window, and at least two partitions.
  SessionRig rig({.tensors = {{.owners = {2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0}}}}, 48);
  ASSERT_TRUE(rig.start(0).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0}, Key{0, 1}, Key{0, 2}, Key{0, 3}, Key{0, 4}, Key{0, 5}));
  SessionRig narrow({.tensors = {{.owners = {2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0}}}}, 32);
  ASSERT_TRUE(narrow.start(0).ok());
  EXPECT_THAT(narrow.pushed(), ElementsAre(Key{0, 0}, Key{0, 1}, Key{0, 3}, Key{0, 4}));
  ASSERT_TRUE(narrow.result({0, 0}).ok());
  EXPECT_THAT(narrow.pushed(), ElementsAre(Key{0, 2}));
}

TEST(SessionOrder, SilentOwnersCreditGrows) {
  // Owner 2's credit allows two partitions. Other workers have pushed other partitions to it, so none of its sums
  // completes.
  SessionRig rig({.tensors = {{.owners = {2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}}}, 32);
  ASSERT_TRUE(rig.start(0).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0}, Key{0, 1}, Key{0, 4}, Key{0, 5}));
  std::vector<Key> later;
  for (uint32_t i = 4; i < 8; ++i) {
    ASSERT_TRUE(rig.result({0, i}).ok());
    for (const Key& key : rig.pushed()) later.push_back(key);
    rig.tick(kStall / 2);
    for (const Key& key : rig.pushed()) later.push_back(key);
  }
  EXPECT_THAT(later, ::testing::Contains(Key{0, 2}));
  EXPECT_THAT(later, ::testing::Contains(Key{0, 3}));
  EXPECT_GT(rig.session.counters().stalls, 0u);
}

TEST(SessionOrder, ArrivedPartitionsLeaveTheWindow) {
  SessionRig rig({.tensors = {{.owners = {2, 2, 2, 2, 2, 2}}}}, 16);
  ASSERT_TRUE(rig.start(0).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0}, Key{0, 1}));
  ASSERT_TRUE(rig.result({0, 1}).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 2}, Key{0, 3}))
      << "the earlier pushes arrived and wait for other workers";
  EXPECT_EQ(rig.session.counters().outstanding_bytes, 24u);
  EXPECT_EQ(rig.session.counters().window_used_bytes, 16u);
  ASSERT_TRUE(rig.result({0, 0}).ok());
  EXPECT_THAT(rig.pushed(), IsEmpty());
  ASSERT_TRUE(rig.result({0, 2}).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 4}));
  rig.reconnect(2);
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 3}, Key{0, 4})) << "arrived pushes do not count any more";
}

TEST(SessionOrder, ColocatedPushesNeedNoWindow) {
  SessionRig rig({.tensors = {{.owners = {2, 1, 2, 1, 2, 1}}}}, 16);  // the session is that of worker 1
  ASSERT_TRUE(rig.start(0).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0}, Key{0, 1}, Key{0, 2}, Key{0, 3}));
  ASSERT_TRUE(rig.result({0, 1}).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 5})) << "the colocated partition frees no room either";
  ASSERT_TRUE(rig.result({0, 0}).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 4}));
}

TEST(SessionOrder, SkipsUnconnectedOwner) {
  SessionRig rig({.tensors = {{.owners = {2, 0, 2, 0}}}});
  rig.session.on_disconnected(2);
  ASSERT_TRUE(rig.start(0).ok());
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 1}, Key{0, 3}));
  rig.connect(2);
  EXPECT_THAT(rig.pushed(), ElementsAre(Key{0, 0}, Key{0, 2}));
}

TEST(SessionWindow, FollowsTheRoundTrip) {
  SessionRig rig({.tensors = {{.owners = std::vector<uint32_t>(20, 2)}}}, 0);
  const auto window = [&] { return static_cast<double>(rig.session.counters().window_bytes); };
  const double link = rig.plan->members[1].bits_per_second / 8;
  const double by_default = window();
  rig.session.set_round_trip(absl::Seconds(0.1 * by_default / link));
  EXPECT_EQ(window(), by_default) << "the change is too small";
  rig.session.set_round_trip(absl::Seconds(3 * by_default / link));
  EXPECT_NEAR(window(), 4 * by_default, 64);
  rig.session.set_round_trip(absl::ZeroDuration());
  EXPECT_EQ(window(), by_default);
  SessionRig asked({.tensors = {{.owners = {2}}}}, 1 << 20);
  asked.session.set_round_trip(absl::Seconds(10));
  EXPECT_EQ(asked.session.counters().window_bytes, 1u << 20);
}

TEST(SessionStall, WindowDoublesUntilAResult) {
  SessionRig rig({.tensors = {{.owners = std::vector<uint32_t>(20, 2)}}}, 16);
  ASSERT_TRUE(rig.start(0).ok());
  EXPECT_THAT(rig.pushed(), SizeIs(2));
  rig.tick(kStall - absl::Milliseconds(1));
  EXPECT_THAT(rig.pushed(), IsEmpty());
  rig.tick(absl::Milliseconds(1));
  EXPECT_THAT(rig.pushed(), SizeIs(2));
  rig.tick(kStall);
  EXPECT_THAT(rig.pushed(), SizeIs(4));
  EXPECT_EQ(rig.session.counters().stalls, 2u);
  for (uint32_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(rig.result({0, i}).ok());
    EXPECT_THAT(rig.pushed(), IsEmpty()) << i;
  }
  ASSERT_TRUE(rig.result({0, 6}).ok());
  EXPECT_THAT(rig.pushed(), SizeIs(1));
}

TEST(SessionStall, ResultsResetTheStallTimer) {
  SessionRig rig({.tensors = {{.owners = std::vector<uint32_t>(20, 2)}}}, 16);
  ASSERT_TRUE(rig.start(0).ok());
  rig.tick(kStall - absl::Milliseconds(1));
  ASSERT_TRUE(rig.result({0, 0}).ok());
  rig.tick(kStall - absl::Milliseconds(1));
  EXPECT_EQ(rig.session.counters().stalls, 0u);
}

TEST(SessionStall, NoGrowthWithoutHeldPartitions) {
  SessionRig rig({.tensors = {{.owners = {2, 2}}}}, 16);
  ASSERT_TRUE(rig.start(0).ok());
  for (int i = 0; i < 10; ++i) rig.tick(kStall);
  EXPECT_EQ(rig.session.counters().stalls, 0u);
}

}  // namespace
}  // namespace gleaner::testing
