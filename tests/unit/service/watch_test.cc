// What a watch does when its machine is needed: with real threads, and a machine that is told.
#include "summation-service/service/watch.h"

#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace gleaner::service {
namespace {

class WatchTest : public testing::Test {
 protected:
  // A machine of two processors, on which others take all from the start, or nothing.
  Watch::Actions actions(bool needed) {
    const absl::Time begin = absl::Now();
    return {[begin, needed]() -> std::optional<Usage> {
              const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
              return needed ? Usage{2 * seconds, 0, 0} : Usage{0, 2 * seconds, 0};
            },
            [this] { left_.Notify(); }, [this] { cut_.Notify(); }};
  }

  const SystemEnv system_{{"test", LogLevel::kOff}};
  absl::Notification left_, cut_;
};

TEST_F(WatchTest, LeavesAndCutsOffWhatTakesTooLong) {
  const absl::Time begin = absl::Now();
  const Watch watch(system_.env(), 0.8, actions(true));
  ASSERT_TRUE(left_.WaitForNotificationWithTimeout(absl::Seconds(30)));
  EXPECT_GT(absl::Now() - begin, Guard::kWindow);
  EXPECT_FALSE(cut_.HasBeenNotified());
  EXPECT_GT(watch.others_share(), 0.9);
  EXPECT_TRUE(cut_.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

TEST_F(WatchTest, WhoHardlyGetsATurnIsCutOffAtOnce) {
  Watch::Actions starved = actions(true);
  starved.read = [read = starved.read] {
    absl::SleepFor(Watch::kLate);
    return read();
  };
  const Watch watch(system_.env(), 0.8, std::move(starved));
  EXPECT_TRUE(cut_.WaitForNotificationWithTimeout(absl::Seconds(30)));
  EXPECT_FALSE(left_.HasBeenNotified());
}

TEST_F(WatchTest, WhoHasLeftIsNotCutOff) {
  {
    const Watch watch(system_.env(), 0.8, actions(true));
    ASSERT_TRUE(left_.WaitForNotificationWithTimeout(absl::Seconds(30)));
  }
  EXPECT_FALSE(cut_.WaitForNotificationWithTimeout(2 * Watch::kPatience));
}

TEST_F(WatchTest, StaysWhileNobodyNeedsTheMachine) {
  const Watch watch(system_.env(), 0.8, actions(false));
  EXPECT_FALSE(left_.WaitForNotificationWithTimeout(2 * Guard::kWindow));
  EXPECT_EQ(watch.others_share(), 0);
}

}  // namespace
}  // namespace gleaner::service
