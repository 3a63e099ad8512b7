// Tests of RunningSum: what an answer contains, and that answers are never overwritten.
#include "summation-service/engine/running_sum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace gleaner::testing {
namespace {

using ::testing::ElementsAre;

class RunningSum : public ::testing::Test {
 protected:
  void add(uint32_t worker, float first, float second) {
    Buffer contribution = pool.take(8);
    const float both[] = {first, second};
    std::memcpy(contribution.bytes().data(), both, 8);
    sum.add(worker, contribution, DataType::kFloat32, kernels, pool);
  }
  static std::vector<float> values_of(const Buffer& answer) {
    std::vector<float> values(2);
    std::memcpy(values.data(), answer.bytes().data(), 8);
    return values;
  }
  static std::vector<uint64_t> counts_of(const Buffer& answer) {
    std::vector<uint64_t> counts((answer.size() - 8) / sizeof(uint64_t));
    std::memcpy(counts.data(), answer.bytes().data() + 8, answer.size() - 8);
    return counts;
  }
  kernels::Kernels kernels = *kernels::Kernels::choose("");
  BufferPool pool;
  engine::RunningSum sum{3};
};

TEST_F(RunningSum, AnswerHasSumAndCounts) {
  EXPECT_TRUE(sum.answer().empty());
  EXPECT_EQ(sum.version(), 0u);
  add(2, 1, 2);
  add(0, 10, 20);
  add(2, 100, 200);
  EXPECT_THAT(values_of(sum.answer()), ElementsAre(111, 222));
  EXPECT_THAT(counts_of(sum.answer()), ElementsAre(1, 0, 2));
  EXPECT_EQ(sum.count(2), 2u);
  EXPECT_EQ(sum.least_count(), 0u);
  EXPECT_EQ(sum.version(), 3u);
}

TEST_F(RunningSum, UnansweredUntilMarkedAnswered) {
  add(1, 1, 2);
  EXPECT_TRUE(sum.is_unanswered(1));
  EXPECT_FALSE(sum.is_unanswered(0));
  sum.set_unanswered(1, false);
  EXPECT_FALSE(sum.is_unanswered(1));
}

TEST_F(RunningSum, EarlierAnswerKeepsItsValues) {
  add(1, 1, 2);
  const Buffer earlier = sum.answer();
  add(0, 10, 20);
  EXPECT_THAT(values_of(earlier), ElementsAre(1, 2));
  EXPECT_THAT(counts_of(earlier), ElementsAre(0, 1, 0));
}

TEST_F(RunningSum, ContinuesFromEarlierOwnersAnswer) {
  add(1, 1, 2);
  add(1, 10, 20);
  sum = engine::RunningSum(3, sum.answer());
  EXPECT_EQ(sum.count(1), 2u);
  EXPECT_EQ(sum.version(), 2u);
  EXPECT_FALSE(sum.is_unanswered(1)) << "a worker that lacks the answer pushes again";
  add(0, 100, 200);
  EXPECT_THAT(values_of(sum.answer()), ElementsAre(111, 222));
  EXPECT_THAT(counts_of(sum.answer()), ElementsAre(1, 2, 0));
}

}  // namespace
}  // namespace gleaner::testing
