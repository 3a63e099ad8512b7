#include "common/scavenger/share_reports.h"

#include <gtest/gtest.h>

#include <vector>

namespace gleaner::scavenger {
namespace {

using absl::Milliseconds;

class ShareReportsTest : public testing::Test {
 protected:
  // Returns the reports in `time` with this share.
  std::vector<double> pass(absl::Duration time, double share) {
    std::vector<double> told;
    for (const absl::Duration end = now_ + time; now_ < end; now_ += Milliseconds(5)) {
      if (const auto report = reports_.update(now_, share)) told.push_back(*report);
    }
    return told;
  }

  ShareReports reports_;
  absl::Duration now_ = absl::Seconds(100);
};

TEST_F(ShareReportsTest, TellsNothingWhileTheShareIsWhole) { EXPECT_TRUE(pass(absl::Minutes(1), 1).empty()); }

TEST_F(ShareReportsTest, TellsAFallWithinATenthOfASecondAndItsEndWithinASecond) {
  pass(absl::Seconds(1), 1);
  ASSERT_EQ(pass(Milliseconds(100), 0.01).size(), 1u);
  pass(absl::Seconds(1), 0.01);
  EXPECT_LE(reports_.told(), 0.02);
}

TEST_F(ShareReportsTest, DoesNotTellAFallThatDoesNotLast) {
  pass(absl::Seconds(1), 1);
  EXPECT_TRUE(pass(Milliseconds(20), 0.25).empty());
  EXPECT_TRUE(pass(absl::Seconds(1), 1).empty());
}

TEST_F(ShareReportsTest, TellsARiseOnceASecondAtMostAndTheWholeAtLast) {
  pass(absl::Seconds(2), 0.01);
  const auto told = pass(absl::Seconds(5), 1);
  ASSERT_FALSE(told.empty());
  EXPECT_LE(told.size(), 5u);
  EXPECT_EQ(told.back(), 1);
}

TEST_F(ShareReportsTest, SmallChangesAreNotTold) {
  pass(absl::Seconds(3), 0.5);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(pass(Milliseconds(100), i % 2 == 0 ? 0.45 : 0.55).empty());
  }
}

}  // namespace
}  // namespace gleaner::scavenger
