#include "comm-lib/session/retention.h"

#include <gtest/gtest.h>

#include "common/base/block_size.h"

namespace gleaner::session {
namespace {

// The results of four partitions in a job of two workers and one CPU summer, which is member 2.
class RetentionTest : public ::testing::Test {
 protected:
  RetentionTest() { retention_.resize(4, 3, 2); }
  void keep(uint32_t partition, uint32_t owner, uint32_t number) {
    retention_.keep(partition, owner, number, pool_.take(8), ReduceOp::kSum);
  }
  bool is_kept(uint32_t partition) const { return !retention_.find(partition).buffer.empty(); }

  BufferPool pool_;
  Retention retention_;
};

TEST_F(RetentionTest, ReleasesByNumber) {
  keep(0, 2, 7);
  keep(1, 2, 8);
  keep(2, 0, 7);
  EXPECT_EQ(retention_.bytes(), 24u);
  retention_.release(2, 8);
  EXPECT_FALSE(is_kept(0));
  EXPECT_TRUE(is_kept(1)) << "the number is not below 8";
  EXPECT_TRUE(is_kept(2)) << "another owner's result";
  EXPECT_EQ(retention_.bytes(), 16u);
}

TEST_F(RetentionTest, NumbersWrapAround) {
  keep(0, 2, UINT32_MAX);
  keep(1, 2, 0);
  retention_.release(2, UINT32_MAX);
  EXPECT_TRUE(is_kept(0));
  retention_.release(2, 0);
  EXPECT_FALSE(is_kept(0));
  EXPECT_TRUE(is_kept(1));
}

TEST_F(RetentionTest, LaterResultsReplaceEarlierOnes) {
  for (uint32_t number = 0; number < 100; ++number) keep(number % 2, 2, number);
  EXPECT_EQ(retention_.bytes(), 16u);
  EXPECT_EQ(pool_.bytes_in_use(), 2 * block_size(8));
  retention_.release(2, 98);
  EXPECT_TRUE(is_kept(0)) << "only the result that was replaced had an earlier number";
  retention_.release(2, 99);
  EXPECT_FALSE(is_kept(0));
  EXPECT_TRUE(is_kept(1));
}

TEST_F(RetentionTest, DetachedResultsIgnoreNumbers) {
  keep(0, 2, 1);
  retention_.detach(0);
  EXPECT_TRUE(retention_.is_detached(0));
  retention_.release(2, 100);
  EXPECT_TRUE(is_kept(0));
  retention_.forget(2);
  keep(1, 2, 0);
  retention_.release(2, 1);
  EXPECT_FALSE(is_kept(1)) << "another member has the place, and begins with 0";
  EXPECT_TRUE(is_kept(0));
}

TEST_F(RetentionTest, OthersNeedSummersResults) {
  keep(0, 2, 0);
  keep(1, 0, 0);
  EXPECT_TRUE(retention_.is_needed_by_others(0));
  EXPECT_FALSE(retention_.is_needed_by_others(1)) << "a worker delivers its results before it leaves";
  EXPECT_EQ(retention_.needed_by_others(), 1u);
  retention_.detach(1);
  EXPECT_EQ(retention_.needed_by_others(), 2u);
  retention_.drop(0);
  retention_.drop(1);
  EXPECT_EQ(retention_.needed_by_others(), 0u);
  EXPECT_EQ(retention_.bytes(), 0u);
}

}  // namespace
}  // namespace gleaner::session
