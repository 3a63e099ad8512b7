// Tests of RetainedResults: the workers that lack a result, the end of its retention, its number and its memory.
#include "summation-service/engine/retained_results.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/blocks.h"

namespace gleaner::testing {
namespace {

class RetainedResults : public ::testing::Test {
 protected:
  RetainedResults() { results.resize(3, 2); }
  void retain(uint32_t partition) {
    memory.reserve(0, kBlock);  // as the sum has done
    results.retain(partition, ReduceOp::kAverage, {0, 3}, pool.take(8));
  }
  // Worker 1 has the result of the partition, the others lack it.
  void expect(uint32_t partition) {
    engine::WorkerSet ahead(3);
    ahead.add(1);
    results.expect(partition, 8, ahead, 2);
  }
  BufferPool pool;
  engine::MemoryBudget memory{0};
  engine::Releases releases;
  engine::RetainedResults results{&memory, &releases};
};

TEST_F(RetainedResults, KeepsResultUntilAllAcknowledge) {
  EXPECT_FALSE(results.has(1));
  EXPECT_FALSE(results.is_lacked_by(1, 0));
  retain(1);
  EXPECT_TRUE(results.is_lacked_by(1, 0));
  EXPECT_EQ(results.at(1).op, ReduceOp::kAverage);
  results.acknowledge(1, 0);
  results.acknowledge(1, 0);
  results.acknowledge(1, 2);
  EXPECT_FALSE(results.is_lacked_by(1, 0));
  EXPECT_TRUE(results.is_lacked_by(1, 1));
  EXPECT_EQ(memory.reserved(), kBlock);
  results.acknowledge(1, 1);
  EXPECT_FALSE(results.has(1));
  EXPECT_EQ(memory.reserved(), 0u);
  EXPECT_EQ(pool.bytes_in_use(), 0u);
  results.acknowledge(1, 1);
  retain(1);
  EXPECT_TRUE(results.is_lacked_by(1, 0)) << "the next result is acknowledged separately";
}

TEST_F(RetainedResults, NumbersResultsInOrder) {
  retain(1);
  retain(0);
  EXPECT_EQ(results.at(1).number, 0u);
  EXPECT_EQ(results.at(0).number, 1u);
  results.drop(0);
  EXPECT_EQ(releases.first_unreleased(), 0u);
  results.drop(1);
  EXPECT_EQ(releases.first_unreleased(), 2u);
  EXPECT_EQ(memory.reserved(), 0u);
}

TEST_F(RetainedResults, SendsExpectedResultOnArrival) {
  expect(0);
  EXPECT_TRUE(results.has(0));
  EXPECT_FALSE(results.is_lacked_by(0, 0)) << "the result has not arrived yet";
  results.receive(0, ReduceOp::kSum, pool.take(8));
  EXPECT_TRUE(results.is_lacked_by(0, 0));
  EXPECT_FALSE(results.is_lacked_by(0, 1));
  EXPECT_EQ(results.at(0).number, 0u);
  results.acknowledge(0, 0);
  results.acknowledge(0, 2);
  EXPECT_FALSE(results.has(0));
  EXPECT_EQ(releases.first_unreleased(), 1u);
}

TEST_F(RetainedResults, FetchedResultIsOutsideBudget) {
  expect(0);
  EXPECT_EQ(results.handed_bytes(), kBlock);
  EXPECT_EQ(memory.reserved(), 0u);
  results.drop(0);
  EXPECT_EQ(results.handed_bytes(), 0u);
  EXPECT_EQ(releases.first_unreleased(), 0u) << "the fetched result had no number";
  retain(0);
  EXPECT_EQ(results.handed_bytes(), 0u) << "the result was summed here";
  results.drop(0);
  EXPECT_EQ(memory.reserved(), 0u);
}

}  // namespace
}  // namespace gleaner::testing
