#include "common/base/periodic.h"

#include <atomic>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace gleaner {
namespace {

TEST(Periodic, CallsRepeatedlyUntilItIsDestroyed) {
  std::atomic<int> calls = 0;
  absl::Notification third;
  {
    const Periodic periodic("periodic", absl::Milliseconds(1), Periodic::First::kAfterInterval, [&] {
      if (++calls == 3) third.Notify();
    });
    third.WaitForNotification();
  }
  const int at_the_end = calls;
  EXPECT_GE(at_the_end, 3);
  EXPECT_EQ(calls, at_the_end);
}

TEST(Periodic, CallsAtOnceIfTheFirstCallIsNow) {
  absl::Notification called;
  const Periodic periodic("periodic", absl::InfiniteDuration(), Periodic::First::kNow, [&] { called.Notify(); });
  called.WaitForNotification();
}

TEST(Periodic, WaitsForTheFirstInterval) {
  std::atomic<int> calls = 0;
  {
    const Periodic periodic("periodic", absl::Hours(1), Periodic::First::kAfterInterval, [&] { ++calls; });
  }
  EXPECT_EQ(calls, 0);
}

TEST(Periodic, DestructionWaitsForACallInProgress) {
  absl::Notification begun, go_on;
  std::atomic<bool> ended = false;
  std::thread opener([&] {
    begun.WaitForNotification();
    go_on.Notify();
  });
  {
    const Periodic periodic("periodic", absl::InfiniteDuration(), Periodic::First::kNow, [&] {
      begun.Notify();
      go_on.WaitForNotification();
      ended = true;
    });
    begun.WaitForNotification();
  }
  EXPECT_TRUE(ended);
  opener.join();
}

}  // namespace
}  // namespace gleaner
