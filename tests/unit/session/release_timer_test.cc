#include "comm-lib/session/release_timer.h"

#include <gtest/gtest.h>

namespace gleaner::session {
namespace {

class ReleaseTimerTest : public ::testing::Test {
 protected:
  // Ticks every millisecond until it is time to ask, and returns how long that took. -1: not within two seconds.
  int quiet_time(bool has_questions = true) {
    for (int i = 1; i <= 2000; ++i) {
      now_ += absl::Milliseconds(1);
      if (timer_.tick(0, 1, has_questions, now_)) return i;
    }
    return -1;
  }
  ReleaseTimer timer_;
  absl::Duration now_ = absl::Seconds(1);
};

TEST_F(ReleaseTimerTest, PausesDouble) {
  EXPECT_FALSE(timer_.tick(1, 1, true, now_)) << "a piece is in flight";
  EXPECT_EQ(quiet_time(), 1);
  EXPECT_EQ(quiet_time(), 10);
  EXPECT_EQ(quiet_time(), 20);
  for (int i = 0; i < 6; ++i) quiet_time();
  EXPECT_EQ(quiet_time(), 500);
  EXPECT_FALSE(timer_.tick(1, 1, true, now_ += absl::Seconds(1)));
  EXPECT_EQ(quiet_time(), 1);
  EXPECT_EQ(quiet_time(), 10) << "the pause is short again";
}

TEST_F(ReleaseTimerTest, ShortPieceIsNotQuiet) {
  EXPECT_FALSE(timer_.tick(0, 1, true, now_));
  EXPECT_TRUE(timer_.tick(0, 1, true, now_));
  EXPECT_FALSE(timer_.tick(0, 2, true, now_ += absl::Seconds(1)));
  EXPECT_TRUE(timer_.tick(0, 2, true, now_));
}

TEST_F(ReleaseTimerTest, AsksNothingWithoutRetainedResults) { EXPECT_EQ(quiet_time(false), -1); }

}  // namespace
}  // namespace gleaner::session
