#include "comm-lib/local/tensor_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::local {
namespace {

std::vector<uint32_t> drain(TensorQueue& queue) {
  std::vector<uint32_t> tensors;
  for (; !queue.empty(); queue.pop()) tensors.push_back(queue.front());
  return tensors;
}

TEST(TensorQueue, IsFirstInFirstOut) {
  TensorQueue queue;
  queue.reserve(3);
  EXPECT_TRUE(queue.empty());
  for (const uint32_t tensor : {2u, 0u, 1u}) queue.push(tensor);
  EXPECT_THAT(drain(queue), testing::ElementsAre(2, 0, 1));
}

TEST(TensorQueue, ReserveKeepsTheOrderAcrossTheEndOfTheRing) {
  TensorQueue queue;
  queue.reserve(3);
  for (const uint32_t tensor : {0u, 1u, 2u}) queue.push(tensor);
  queue.pop();
  queue.push(0);
  queue.reserve(5);
  queue.push(3);
  queue.push(4);
  EXPECT_THAT(drain(queue), testing::ElementsAre(1, 2, 0, 3, 4));
}

}  // namespace
}  // namespace gleaner::local
