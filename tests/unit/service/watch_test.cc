// Tests of Watch on a machine that other processes need, with real threads and a simulated use of the machine.
#include "summation-service/service/watch.h"

#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace gleaner::service {
namespace {

class WatchTest : public testing::Test {
 protected:
  // Returns the use of a machine with two processors, on which others use either both or none.
  Watch::Actions actions(bool needed) {
    const absl::Time begin = absl::Now();
    return {[begin, needed]() -> std::optional<Usage> {
              const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
              return needed ? Usage{2 * seconds, 0, 0} : Usage{0, 2 * seconds, 0};
            },
            [this] { left_.Notify(); }, [this] { killed_.Notify(); }};
  }

  const SystemEnv system_{{"test", LogLevel::kOff}};
  absl::Notification left_, killed_;
};

TEST_F(WatchTest, LeavesAndEndsTheProcessIfThatTakesTooLong) {
  const absl::Time begin = absl::Now();
  const Watch watch(system_.env(), 0.8, actions(true));
  ASSERT_TRUE(left_.WaitForNotificationWithTimeout(absl::Seconds(30)));
  EXPECT_GT(absl::Now() - begin, Guard::kWindow);
  EXPECT_FALSE(killed_.HasBeenNotified());
  EXPECT_GT(watch.others_share(), 0.9);
  EXPECT_TRUE(killed_.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

TEST_F(WatchTest, AStarvedProcessEndsAtOnce) {
  Watch::Actions starved = actions(true);
  starved.read = [read = starved.read] {
    absl::SleepFor(Watch::kLate);
    return read();
  };
  const Watch watch(system_.env(), 0.8, std::move(starved));
  EXPECT_TRUE(killed_.WaitForNotificationWithTimeout(absl::Seconds(30)));
  EXPECT_FALSE(left_.HasBeenNotified());
}

TEST_F(WatchTest, AProcessThatHasLeftIsNotEnded) {
  {
    const Watch watch(system_.env(), 0.8, actions(true));
    ASSERT_TRUE(left_.WaitForNotificationWithTimeout(absl::Seconds(30)));
  }
  EXPECT_FALSE(killed_.WaitForNotificationWithTimeout(2 * Watch::kPatience));
}

TEST_F(WatchTest, StaysWhileNoOtherProcessNeedsTheMachine) {
  const Watch watch(system_.env(), 0.8, actions(false));
  EXPECT_FALSE(left_.WaitForNotificationWithTimeout(2 * Guard::kWindow));
  EXPECT_EQ(watch.others_share(), 0);
}

}  // namespace
}  // namespace gleaner::service
