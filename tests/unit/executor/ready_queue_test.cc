#include "comm-lib/executor/ready_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::executor {
namespace {

using ::testing::ElementsAre;

TEST(ReadyQueue, OrdersByPriorityThenPositionThenAge) {
  ReadyQueue queue;
  uint64_t step = 0;
  const std::vector<std::pair<int32_t, uint32_t>> pushed = {{1, 0}, {0, 7}, {1, 0}, {0, 3}, {-1, 9}, {0, 3}};
  for (const auto& [priority, position] : pushed) {
    queue.push({.subject = {.step = step++}, .order = {priority, position}});
  }
  std::vector<uint64_t> order;
  while (!queue.empty()) order.push_back(queue.pop().subject.step);
  EXPECT_THAT(order, ElementsAre(4, 3, 5, 1, 0, 2));
}

TEST(ReadyQueue, ReleasesPayloads) {
  BufferPool pool;
  ReadyQueue queue;
  queue.push({.payload = pool.take(10)});
  EXPECT_EQ(queue.front().payload.size(), 10u);
  EXPECT_EQ(queue.pop().payload.size(), 10u);
  EXPECT_EQ(pool.bytes_in_use(), 0u);
  queue.push({.payload = pool.take(20)});
  queue.clear();
  EXPECT_EQ(pool.bytes_in_use(), 0u);
}

}  // namespace
}  // namespace gleaner::executor
