#include "comm-lib/collective/start_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::collective {
namespace {

using ::testing::ElementsAre;

// Begins partitions of 10 bytes while there is room. Returns their indexes.
std::vector<uint32_t> begin_all(StartQueue& queue, absl::Duration now = absl::ZeroDuration()) {
  std::vector<uint32_t> begun;
  while (!queue.empty() && queue.has_room(10)) {
    begun.push_back(queue.front().next);
    queue.begin(10, now);
  }
  return begun;
}

TEST(StartQueue, UrgentPartitionsBeginFirst) {
  StartQueue queue;
  queue.set_limit(1'000);
  queue.push({.priority = 1, .next = 0, .end = 2});
  queue.push({.priority = 0, .next = 7, .end = 9});
  queue.push({.priority = 0, .next = 4, .end = 5});
  EXPECT_THAT(begin_all(queue), ElementsAre(4, 7, 8, 0, 1));
  EXPECT_TRUE(queue.empty());
}

TEST(StartQueue, LimitHolds) {
  StartQueue queue;
  queue.set_limit(25);
  queue.push({.next = 0, .end = 4});
  EXPECT_THAT(begin_all(queue), ElementsAre(0, 1));
  queue.end(10);
  EXPECT_THAT(begin_all(queue), ElementsAre(2));
}

TEST(StartQueue, OnePartitionMayExceedTheLimit) {
  StartQueue queue;
  queue.set_limit(5);
  queue.push({.next = 0, .end = 2});
  EXPECT_THAT(begin_all(queue), ElementsAre(0));
}

TEST(StartQueue, SilenceLetsMoreBegin) {
  StartQueue queue;
  queue.set_limit(20);
  queue.push({.next = 0, .end = 9});
  EXPECT_THAT(begin_all(queue), ElementsAre(0, 1));
  absl::Duration now = StartQueue::kSilence / 2;
  queue.on_frame(now);
  queue.on_tick(StartQueue::kSilence);
  EXPECT_THAT(begin_all(queue), ElementsAre()) << "a frame came a short time ago";
  now += StartQueue::kSilence;
  queue.on_tick(now);
  EXPECT_THAT(begin_all(queue), ElementsAre(2, 3)) << "half of two, and one";
  queue.on_tick(now);
  EXPECT_THAT(begin_all(queue), ElementsAre());
  queue.on_tick(now + StartQueue::kSilence);
  EXPECT_THAT(begin_all(queue), ElementsAre(4, 5, 6));
}

TEST(StartQueue, IdleTimeIsNoSilence) {
  StartQueue queue;
  queue.set_limit(10);
  queue.push({.next = 0, .end = 2});
  EXPECT_THAT(begin_all(queue, absl::Seconds(9)), ElementsAre(0));
  queue.on_tick(absl::Seconds(9) + StartQueue::kSilence / 2);
  EXPECT_THAT(begin_all(queue), ElementsAre());
}

}  // namespace
}  // namespace gleaner::collective
