// Tests of GatheringSums: missing contributions, the order and the division of sums, and the reserved memory.
#include "summation-service/engine/gathering_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/engine/blocks.h"

namespace gleaner::testing {
namespace {

using ::testing::ElementsAre;

class GatheringSums : public ::testing::Test {
 protected:
  GatheringSums() { sums.resize(3, 2); }
  Buffer values(float first, float second) {
    Buffer buffer = pool.take(8);
    const float both[] = {first, second};
    std::memcpy(buffer.bytes().data(), both, 8);
    return buffer;
  }
  static std::vector<float> floats(const Buffer& buffer) {
    std::vector<float> values(buffer.size() / sizeof(float));
    std::memcpy(values.data(), buffer.bytes().data(), buffer.size());
    return values;
  }
  kernels::Kernels kernels = *kernels::Kernels::choose("");
  BufferPool pool;
  engine::MemoryBudget memory{5 * kBlock};
  engine::GatheringSums sums{&kernels, &pool, &memory};
};

TEST_F(GatheringSums, LastContributionCompletesSum) {
  EXPECT_FALSE(sums.is_gathering(1));
  EXPECT_FALSE(sums.has_contribution(1, 2));
  ASSERT_TRUE(sums.begin(1, ReduceOp::kSum, {0, 3, 8, 8}));
  EXPECT_FALSE(sums.add(1, 2, values(1, 2)));
  EXPECT_FALSE(sums.add(1, 1, values(10, 20)));
  EXPECT_TRUE(sums.has_contribution(1, 2));
  EXPECT_FALSE(sums.has_contribution(1, 0));
  EXPECT_EQ(sums.first_contributor(1), 1u);
  EXPECT_TRUE(sums.add(1, 0, values(100, 200)));
  EXPECT_THAT(floats(sums.make_sum(1, DataType::kFloat32, DataType::kFloat32, 3)), ElementsAre(111, 222));
  EXPECT_FALSE(sums.is_gathering(1));
}

TEST_F(GatheringSums, AddsInWorkerOrder) {
  ASSERT_TRUE(sums.begin(0, ReduceOp::kSum, {0, 3, 8, 8}));
  sums.add(0, 2, values(1, 0));
  sums.add(0, 1, values(-1e30F, 0));
  sums.add(0, 0, values(1e30F, 0));
  EXPECT_THAT(floats(sums.make_sum(0, DataType::kFloat32, DataType::kFloat32, 3)), ElementsAre(1, 0))
      << "1 + -1e30 + 1e30 is 0";
}

TEST_F(GatheringSums, GroupOfWorkersCompletesSum) {
  ASSERT_TRUE(sums.begin(0, ReduceOp::kSum, {0, 2, 8, 8}));
  EXPECT_EQ(memory.reserved(), 3 * kBlock);
  EXPECT_FALSE(sums.add(0, 2, values(1, 2)));
  EXPECT_TRUE(sums.add(0, 0, values(10, 20)));
  EXPECT_THAT(floats(sums.make_sum(0, DataType::kFloat32, DataType::kFloat32, 2)), ElementsAre(11, 22));
  EXPECT_EQ(memory.reserved(), kBlock);
  ASSERT_TRUE(sums.begin(0, ReduceOp::kSum, {0, 3, 8, 8}));
  for (uint32_t worker = 0; worker < 3; ++worker) sums.add(0, worker, values(1, 1));
  EXPECT_THAT(floats(sums.make_sum(0, DataType::kFloat32, DataType::kFloat32, 3)), ElementsAre(3, 3));
}

TEST_F(GatheringSums, AveragesOverRanks) {
  ASSERT_TRUE(sums.begin(0, ReduceOp::kAverage, {0, 3, 8, 8}));
  EXPECT_EQ(sums.op(0), ReduceOp::kAverage);
  for (uint32_t worker = 0; worker < 3; ++worker) sums.add(0, worker, values(2, 4));
  EXPECT_THAT(floats(sums.make_sum(0, DataType::kFloat32, DataType::kFloat32, 6)), ElementsAre(1, 2));
}

TEST_F(GatheringSums, ReservesContributionsAndResult) {
  ASSERT_TRUE(sums.begin(0, ReduceOp::kSum, {0, 3, 8, 8}));
  EXPECT_EQ(memory.reserved(), 4 * kBlock);
  EXPECT_FALSE(sums.begin(1, ReduceOp::kSum, {0, 3, 8, 8})) << "the sum needs four blocks, and one is left";
  EXPECT_FALSE(sums.is_gathering(1));
  EXPECT_EQ(memory.reserved(), 4 * kBlock);
  for (uint32_t worker = 0; worker < 3; ++worker) sums.add(0, worker, values(2, 4));
  const Buffer sum = sums.make_sum(0, DataType::kFloat32, DataType::kFloat32, 3);
  EXPECT_EQ(memory.reserved(), kBlock) << "the result's";
  EXPECT_EQ(pool.bytes_in_use(), kBlock) << "the contributions are freed";
}

// A partial sum of 40000 lies in the range of fp16, and the sum of three lies outside it.
TEST_F(GatheringSums, RoundsOnce) {
  ASSERT_TRUE(sums.begin(0, ReduceOp::kAverage, {0, 3, 8, 4}));
  for (uint32_t worker = 0; worker < 3; ++worker) sums.add(0, worker, values(40000, 0x1p-24F));
  const Buffer sum = sums.make_sum(0, DataType::kFloat32, DataType::kFloat16, 6);
  ASSERT_EQ(sum.size(), 4u);
  uint16_t halves[2];
  std::memcpy(halves, sum.bytes().data(), sizeof(halves));
  EXPECT_EQ(halves[0], 0x74E2) << "20000";
  EXPECT_EQ(halves[1], 0) << "half of the least fp16 number, a tie that goes to even";
}

TEST_F(GatheringSums, ReservesMoreForWiderContributions) {
  EXPECT_EQ(engine::GatheringSums::memory_of(3, 2 * kBlock, kBlock), 7 * kBlock);
  EXPECT_FALSE(sums.begin(0, ReduceOp::kSum, {0, 3, 2 * kBlock, kBlock}));
  EXPECT_EQ(memory.reserved(), 0u);
}

TEST_F(GatheringSums, DropFreesContributions) {
  ASSERT_TRUE(sums.begin(0, ReduceOp::kSum, {0, 3, 8, 8}));
  sums.add(0, 1, values(7, 7));
  sums.drop(0);
  EXPECT_FALSE(sums.is_gathering(0));
  EXPECT_EQ(memory.reserved(), 0u);
  EXPECT_EQ(pool.bytes_in_use(), 0u);
  ASSERT_TRUE(sums.begin(0, ReduceOp::kSum, {0, 3, 8, 8}));
  EXPECT_FALSE(sums.has_contribution(0, 1));
  EXPECT_FALSE(sums.add(0, 0, values(1, 1)));
  EXPECT_FALSE(sums.add(0, 1, values(1, 1)));
  EXPECT_TRUE(sums.add(0, 2, values(1, 1)));
  EXPECT_THAT(floats(sums.make_sum(0, DataType::kFloat32, DataType::kFloat32, 3)), ElementsAre(3, 3));
}

}  // namespace
}  // namespace gleaner::testing
