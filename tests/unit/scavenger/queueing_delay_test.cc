#include "common/scavenger/queueing_delay.h"

#include <gtest/gtest.h>

namespace gleaner::scavenger {
namespace {

using absl::Microseconds;
using absl::Minutes;
using absl::Seconds;

TEST(QueueingDelay, IsTheRoundTripAboveTheLeastOne) {
  QueueingDelay delay;
  EXPECT_EQ(delay.base(), absl::InfiniteDuration());
  EXPECT_EQ(delay.update(Seconds(1), Microseconds(300)), absl::ZeroDuration());
  EXPECT_EQ(delay.update(Seconds(2), Microseconds(1300)), Microseconds(1000));
  EXPECT_EQ(delay.update(Seconds(3), Microseconds(200)), absl::ZeroDuration());
  EXPECT_EQ(delay.update(Seconds(4), Microseconds(1300)), Microseconds(1100));
  EXPECT_EQ(delay.base(), Microseconds(200));
}

TEST(QueueingDelay, ForgetsABaseDelayThatNoRoundTripReachesAnyMore) {
  QueueingDelay delay;
  delay.update(Seconds(0), Microseconds(100));
  EXPECT_EQ(delay.update(Minutes(4), Microseconds(900)), Microseconds(800));
  EXPECT_EQ(delay.update(Minutes(5), Microseconds(900)), absl::ZeroDuration());
}

TEST(QueueingDelay, MeasuresNothingWithoutARoundTrip) {
  QueueingDelay delay;
  EXPECT_EQ(delay.update(Seconds(1), absl::ZeroDuration()), absl::ZeroDuration());
  EXPECT_EQ(delay.update(Seconds(1), -Microseconds(5)), absl::ZeroDuration());
  EXPECT_EQ(delay.base(), absl::InfiniteDuration());
}

TEST(QueueingDelay, SurvivesAClockThatJumps) {
  QueueingDelay delay;
  delay.update(Seconds(100), Microseconds(100));
  EXPECT_EQ(delay.update(absl::Hours(100), Microseconds(400)), absl::ZeroDuration());
  EXPECT_EQ(delay.update(Seconds(1), Microseconds(500)), Microseconds(100));
}

}  // namespace
}  // namespace gleaner::scavenger
