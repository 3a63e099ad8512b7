// Tests of Watch on a machine that other processes need, with real threads, and a simulated clock and use of the
// machine.
#include "summation-service/service/watch.h"

#include <gtest/gtest.h>

#include <atomic>

#include "absl/synchronization/notification.h"
#include "tests/manual_clock.h"

namespace gleaner::service {
namespace {

constexpr absl::Duration kSample = absl::Milliseconds(100);

class WatchTest : public testing::Test {
 protected:
  // Returns the use of a machine with two processors, on which others use either both or none. Each sample is taken
  // `every` after the one before.
  Watch::Actions actions(bool needed, absl::Duration every = kSample) {
    return {[=, this]() -> std::optional<Usage> {
              clock_.advance(every);
              ++samples_;
              if (samples_ == kMany) many_.Notify();
              const double seconds = absl::ToDoubleSeconds(clock_.since_start());
              return needed ? Usage{2 * seconds, 0, 0} : Usage{0, 2 * seconds, 0};
            },
            [this] { left_.Notify(); }, [this] { killed_.Notify(); }};
  }

  static constexpr int kMany = 50;  // samples of several windows
  const Watch::Times quick_{.every = absl::Milliseconds(1), .patience = absl::Milliseconds(1)};
  const SystemEnv system_{{"test", LogLevel::kOff}};
  ManualClock clock_;
  const Env env_{&clock_, system_.env().random, system_.env().log};
  std::atomic<int> samples_ = 0;
  absl::Notification many_, left_, killed_;
};

TEST_F(WatchTest, KillsAfterPatience) {
  Watch::Actions ordered = actions(true);
  ordered.kill = [this] {
    EXPECT_TRUE(left_.HasBeenNotified());
    killed_.Notify();
  };
  const Watch watch(env_, 0.8, std::move(ordered), quick_);
  left_.WaitForNotification();  // the time limit of the test is the deadline
  EXPECT_GT(clock_.since_start(), Guard::kWindow);
  EXPECT_GT(watch.others_share(), 0.9);
  killed_.WaitForNotification();
}

TEST_F(WatchTest, StarvedProcessEndsAtOnce) {
  const Watch watch(env_, 0.8, actions(true, Watch::kLate + kSample), quick_);
  killed_.WaitForNotification();
  EXPECT_FALSE(left_.HasBeenNotified());
}

TEST_F(WatchTest, ProcessThatLeftIsSpared) {
  {
    const Watch watch(env_, 0.8, actions(true), {.every = quick_.every, .patience = absl::Hours(1)});
    left_.WaitForNotification();
  }
  EXPECT_FALSE(killed_.HasBeenNotified());
}

TEST_F(WatchTest, StaysOnQuietMachine) {
  const Watch watch(env_, 0.8, actions(false), quick_);
  many_.WaitForNotification();
  EXPECT_FALSE(left_.HasBeenNotified() || killed_.HasBeenNotified());
  EXPECT_EQ(watch.others_share(), 0);
}

}  // namespace
}  // namespace gleaner::service
