#include "comm-lib/runtime/host_sum.h"

#include <thread>

#include "gtest/gtest.h"

namespace gleaner::runtime {
namespace {

TEST(HostSum, ThreadsSumAtTheSameTime) {
  constexpr size_t kElements = 4096;
  const std::vector<double> ones(kElements, 1);
  const auto* const source = reinterpret_cast<const std::byte*>(ones.data());
  const auto sum_often = [&](double expected) {
    const std::vector<const std::byte*> sources(static_cast<size_t>(expected), source);
    std::vector<double> result(kElements);
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(sum_on_host(DataType::kFloat64, ReduceOp::kSum, sources, reinterpret_cast<std::byte*>(result.data()),
                              kElements)
                      .ok());
      EXPECT_EQ(result.front(), expected);
      EXPECT_EQ(result.back(), expected);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i <= 4; ++i) threads.emplace_back(sum_often, i);
  for (std::thread& thread : threads) thread.join();
}

// The sum 65504 + 65504 exceeds fp16, and its half does not.
TEST(HostSum, RoundsAnAverageOfFp16Once) {
  const uint16_t largest = 0x7bff;
  uint16_t result = 0;
  const auto* const source = reinterpret_cast<const std::byte*>(&largest);
  auto* const output = reinterpret_cast<std::byte*>(&result);
  ASSERT_TRUE(sum_on_host(DataType::kFloat16, ReduceOp::kAverage, {source, source}, output, 1).ok());
  EXPECT_EQ(result, largest);
}

TEST(HostSum, OutputMayBeAnySource) {
  for (const size_t index : {0, 1, 2}) {
    float values[] = {1, 2, 4};
    std::vector<const std::byte*> sources;
    for (const float& value : values) sources.push_back(reinterpret_cast<const std::byte*>(&value));
    auto* const output = reinterpret_cast<std::byte*>(&values[index]);
    ASSERT_TRUE(sum_on_host(DataType::kFloat32, ReduceOp::kSum, sources, output, 1).ok());
    EXPECT_EQ(values[index], 7);
  }
}

}  // namespace
}  // namespace gleaner::runtime
