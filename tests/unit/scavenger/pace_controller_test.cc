#include "common/scavenger/pace_controller.h"

#include <gtest/gtest.h>

namespace gleaner::scavenger {
namespace {

constexpr absl::Duration kRound = absl::Milliseconds(10);

class PaceControllerTest : public testing::Test {
 protected:
  // Updates the controller every 10 ms for `time`.
  void pass(absl::Duration time, absl::Duration delay, bool loss = false) {
    for (const absl::Duration end = now_ + time; now_ < end; now_ += kRound) pace_.update(now_, delay, loss, kRound);
  }
  void grow_to_all() {
    pass(absl::Seconds(4), absl::ZeroDuration());
    ASSERT_EQ(pace_.share(), 1);
  }

  const Law law_{};
  PaceController pace_{law_};
  absl::Duration now_ = absl::Seconds(100);
};

TEST_F(PaceControllerTest, BeginsWithThePlannedPace) { EXPECT_EQ(pace_.share(), 1); }

TEST_F(PaceControllerTest, HasAllAgainWithinThreeSecondsAfterAnyCut) {
  for (const double delay : {1.1, 1.5, 2.0, 3.0, 30.0}) {
    for (const int cuts : {1, 2, 3, 9}) {
      grow_to_all();
      pass(cuts * kRound, delay * law_.target);
      ASSERT_LT(pace_.share(), 1);
      pass(absl::Seconds(3), absl::ZeroDuration());
      EXPECT_EQ(pace_.share(), 1) << delay << ", " << cuts;
    }
  }
}

TEST_F(PaceControllerTest, FallsToTheFloorInFourReactionTimes) {
  grow_to_all();
  pass(4 * kRound, 10 * law_.target);
  EXPECT_EQ(pace_.share(), law_.floor);
  pass(absl::Seconds(60), 10 * law_.target);
  EXPECT_EQ(pace_.share(), law_.floor);
}

TEST_F(PaceControllerTest, CutsInProportionToTheExcess) {
  grow_to_all();
  pass(kRound, 1.5 * law_.target);
  EXPECT_DOUBLE_EQ(pace_.share(), 1 - law_.cut / 2);
}

TEST_F(PaceControllerTest, ALossHalvesIt) {
  grow_to_all();
  pass(kRound, absl::ZeroDuration(), true);
  EXPECT_DOUBLE_EQ(pace_.share(), 0.5);
}

TEST_F(PaceControllerTest, CutsOnceInAReactionTime) {
  grow_to_all();
  for (int i = 0; i < 10; ++i) pace_.update(now_ += absl::Milliseconds(1), 2 * law_.target, false, absl::Seconds(1));
  EXPECT_DOUBLE_EQ(pace_.share(), 1 - law_.cut);
}

TEST_F(PaceControllerTest, StaysNearWhereTheQueueBegan) {
  grow_to_all();
  pass(kRound, 2 * law_.target);
  pass(absl::Seconds(0.8), absl::ZeroDuration());
  const double at_plateau = pace_.share();
  EXPECT_GT(at_plateau, 0.9);
  EXPECT_LT(at_plateau, 1);
}

TEST_F(PaceControllerTest, DoesNotGrowWhileNothingIsMeasured) {
  grow_to_all();
  pass(4 * kRound, 10 * law_.target);
  now_ += absl::Hours(1);
  pass(kRound, absl::ZeroDuration());
  EXPECT_LT(pace_.share(), 0.02);
}

TEST_F(PaceControllerTest, NeverShrinksWithoutCongestionAndNeverPassesThePlan) {
  grow_to_all();
  pass(4 * kRound, 10 * law_.target);
  double last = pace_.share();
  for (int i = 0; i < 1000; ++i) {
    pace_.update(now_ += absl::Milliseconds(7), law_.target, false, kRound);
    EXPECT_GE(pace_.share(), last);
    EXPECT_LE(pace_.share(), 1);
    last = pace_.share();
  }
}

}  // namespace
}  // namespace gleaner::scavenger
