#include "common/member/connection_attempts.h"

#include <gtest/gtest.h>

namespace gleaner::member {
namespace {

constexpr absl::Duration kAttemptTime = absl::Seconds(100);

class ConnectionAttemptsTest : public testing::Test {
 protected:
  // Returns the pause before the next attempt, in milliseconds.
  int64_t pause(bool has_begun, bool leaves) {
    attempts_.end();
    attempts_.retry_later(has_begun, leaves, kAttemptTime);
    int64_t milliseconds = 0;
    while (!attempts_.is_due(kAttemptTime + absl::Milliseconds(milliseconds))) ++milliseconds;
    return milliseconds;
  }

  double random_ = 1;
  ConnectionAttempts attempts_{Pace(), [this] { return random_; }};
};

TEST_F(ConnectionAttemptsTest, PausesDoubleUpToTheLongest) {
  EXPECT_EQ(pause(false, false), 100);
  EXPECT_EQ(pause(false, false), 200);
  for (int i = 0; i < 5; ++i) pause(false, false);
  EXPECT_EQ(pause(false, false), 1000);
  EXPECT_EQ(pause(true, false), 2000) << "after the first commit";
  attempts_.reset_pause();
  EXPECT_EQ(pause(true, false), 200);
}

TEST_F(ConnectionAttemptsTest, AMemberThatLeavesTriesAtTheShortestInterval) {
  for (int i = 0; i < 5; ++i) pause(true, false);
  EXPECT_EQ(pause(true, true), 200);
}

TEST_F(ConnectionAttemptsTest, PausesAreDrawnFromTheirUpperHalf) {
  random_ = 0;
  EXPECT_EQ(pause(false, false), 50);
}

TEST_F(ConnectionAttemptsTest, AnAttemptTimesOutWithoutAMessage) {
  attempts_.begin(kAttemptTime);
  EXPECT_FALSE(attempts_.is_due(kAttemptTime + absl::Hours(1))) << "an attempt is in progress";
  EXPECT_FALSE(attempts_.has_timed_out(absl::ZeroDuration(), kAttemptTime + absl::Seconds(20)));
  EXPECT_TRUE(attempts_.has_timed_out(absl::ZeroDuration(), kAttemptTime + absl::Seconds(21)));
  EXPECT_FALSE(attempts_.has_timed_out(kAttemptTime + absl::Seconds(2), kAttemptTime + absl::Seconds(21)));
  EXPECT_TRUE(attempts_.end());
  EXPECT_FALSE(attempts_.end()) << "the attempt has ended";
  EXPECT_FALSE(attempts_.has_timed_out(absl::ZeroDuration(), kAttemptTime + absl::Seconds(21)));
}

TEST_F(ConnectionAttemptsTest, RetryNowEndsThePause) {
  pause(true, false);
  attempts_.retry_now(kAttemptTime);
  EXPECT_TRUE(attempts_.is_due(kAttemptTime));
}

}  // namespace
}  // namespace gleaner::member
