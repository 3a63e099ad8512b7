#include "comm-lib/executor/start_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::executor {
namespace {

using ::testing::ElementsAre;

// Begins runs of 10 bytes while there is room. Returns their numbers.
std::vector<uint64_t> begin_all(StartQueue& queue) {
  std::vector<uint64_t> begun;
  while (!queue.empty() && queue.has_room(10)) {
    begun.push_back(queue.front().number);
    queue.pop();
    queue.begin(10);
  }
  return begun;
}

void push(StartQueue& queue, uint64_t runs) {
  for (uint64_t i = 0; i < runs; ++i) queue.push({.number = i});
}

TEST(StartQueue, UrgentRunsBeginFirst) {
  StartQueue queue;
  queue.set_limit(1'000);
  queue.push({.order = {1, 0}, .number = 3});
  queue.push({.order = {0, 7}, .number = 2});
  queue.push({.order = {0, 7}, .number = 1});
  queue.push({.order = {0, 4}, .number = 4});
  EXPECT_THAT(begin_all(queue), ElementsAre(4, 1, 2, 3));
  EXPECT_TRUE(queue.empty());
}

TEST(StartQueue, LimitHolds) {
  StartQueue queue;
  queue.set_limit(25);
  push(queue, 4);
  EXPECT_THAT(begin_all(queue), ElementsAre(0, 1));
  queue.end(10);
  EXPECT_THAT(begin_all(queue), ElementsAre(2));
}

TEST(StartQueue, OneRunMayExceedTheLimit) {
  StartQueue queue;
  queue.set_limit(5);
  push(queue, 2);
  EXPECT_THAT(begin_all(queue), ElementsAre(0));
}

TEST(StartQueue, LeastRunsMayExceedTheLimit) {
  StartQueue queue(2);
  queue.set_limit(5);
  push(queue, 3);
  EXPECT_THAT(begin_all(queue), ElementsAre(0, 1));
}

TEST(StartQueue, AdmittedRunsTakeRoom) {
  StartQueue queue;
  queue.set_limit(20);
  push(queue, 9);
  for (int i = 0; i < 3; ++i) queue.begin(10);
  EXPECT_THAT(begin_all(queue), ElementsAre());
  queue.end(10);
  queue.end(10);
  EXPECT_THAT(begin_all(queue), ElementsAre(0));
}

}  // namespace
}  // namespace gleaner::executor
