#include "comm-lib/executor/start_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::executor {
namespace {

using ::testing::ElementsAre;

// Begins partitions of 10 bytes while there is room. Returns their indexes.
std::vector<uint32_t> begin_all(StartQueue& queue) {
  std::vector<uint32_t> begun;
  while (!queue.empty() && queue.has_room(10)) {
    begun.push_back(queue.front().next);
    queue.pop();
    queue.begin(10);
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

TEST(StartQueue, AdmittedPartitionsTakeRoom) {
  StartQueue queue;
  queue.set_limit(20);
  queue.push({.next = 0, .end = 9});
  for (int i = 0; i < 3; ++i) queue.begin(10);
  EXPECT_THAT(begin_all(queue), ElementsAre());
  queue.end(10);
  queue.end(10);
  EXPECT_THAT(begin_all(queue), ElementsAre(0));
}

}  // namespace
}  // namespace gleaner::executor
