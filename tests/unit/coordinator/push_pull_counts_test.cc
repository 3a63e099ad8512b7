#include "coordinator/planning/push_pull_counts.h"

#include <gtest/gtest.h>

namespace gleaner::coordinator {
namespace {

class PushPullCountsTest : public testing::Test {
 protected:
  // Asks and gets the answer at once.
  void count(std::vector<uint64_t> counts, uint32_t epoch = 3) {
    ASSERT_TRUE(counts_.ask(3, now_));
    counts_.on_counts(epoch, std::move(counts), now_);
  }
  bool are_known() const { return counts_.are_known(3, 2, now_); }

  PushPullCounts counts_;
  absl::Duration now_ = absl::Seconds(100);
};

TEST_F(PushPullCountsTest, TheRateGivesTheMargin) {
  count({100, 7});
  EXPECT_FALSE(are_known());
  EXPECT_FALSE(counts_.ask(3, now_)) << "half a second passes first";
  now_ += absl::Seconds(1);
  count({150, 7});
  ASSERT_TRUE(are_known());
  now_ += absl::Milliseconds(100);
  // 50 a second for 0.6 s, and one that another worker may be ahead.
  EXPECT_EQ(counts_.after_next_plan(0, now_), 150u + 30 + 1);
  EXPECT_EQ(counts_.after_next_plan(1, now_), 7u + 1 + 1);
}

TEST_F(PushPullCountsTest, OldCountsAreAskedForAgain) {
  count({100, 7});
  now_ += absl::Seconds(1);
  count({150, 7});
  now_ += absl::Seconds(1);
  EXPECT_FALSE(are_known());
  EXPECT_TRUE(counts_.ask(3, now_));
  counts_.on_counts(3, {200, 7}, now_);
  EXPECT_FALSE(are_known()) << "the first of two new counts";
}

TEST_F(PushPullCountsTest, AMissingAnswerIsAskedForAgain) {
  EXPECT_TRUE(counts_.ask(3, now_));
  now_ += absl::Seconds(1);
  EXPECT_FALSE(counts_.ask(3, now_));
  now_ += absl::Seconds(1);
  EXPECT_TRUE(counts_.ask(3, now_));
}

TEST_F(PushPullCountsTest, AnswersForAnotherPlanDoNotCount) {
  count({100, 7}, 2);
  now_ += absl::Seconds(2);
  count({100, 7});
  now_ += absl::Seconds(1);
  count({150});
  EXPECT_FALSE(are_known()) << "another number of tensors";
  counts_.ask(4, now_);
  EXPECT_FALSE(are_known());
}

TEST_F(PushPullCountsTest, TimesMayBeShorter) {
  using absl::Milliseconds;
  counts_ = PushPullCounts({Milliseconds(10), Milliseconds(40), Milliseconds(20), Milliseconds(30)});
  EXPECT_TRUE(counts_.ask(3, now_));
  EXPECT_TRUE(counts_.ask(3, now_ += Milliseconds(40))) << "no answer";
  counts_.on_counts(3, {100, 7}, now_);
  EXPECT_FALSE(counts_.ask(3, now_ + Milliseconds(9)));
  now_ += Milliseconds(10);
  count({110, 7});
  EXPECT_EQ(counts_.after_next_plan(0, now_), 110u + 30 + 1) << "one each millisecond";
  now_ += Milliseconds(20);
  EXPECT_TRUE(are_known());
  now_ += Milliseconds(1);
  EXPECT_FALSE(are_known());
}

TEST_F(PushPullCountsTest, UnaskedAnswersAreIgnored) {
  counts_.on_counts(0, {1, 2}, now_);
  counts_.on_counts(0, {1, 2}, now_ + absl::Seconds(1));
  EXPECT_FALSE(counts_.are_known(0, 2, now_ + absl::Seconds(1)));
}

}  // namespace
}  // namespace gleaner::coordinator
