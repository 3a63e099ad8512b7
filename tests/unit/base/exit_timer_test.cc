#include "common/base/exit_timer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "absl/synchronization/notification.h"
#include "common/base/end_signals.h"

namespace gleaner {
namespace {

[[noreturn]] void hang() {
  while (true) ::pause();
}

TEST(ExitTimer, EndsAProcessThatHangs) {
  const auto arm_and_hang = [] {
    exit_after(absl::Milliseconds(1), 7, "it took too long");
    hang();
  };
  EXPECT_EXIT(arm_and_hang(), testing::ExitedWithCode(7), "^it took too long\n$");
}

TEST(ExitTimer, ALaterCallReplacesTheEarlierOne) {
  const auto arm_twice = [] {
    exit_after(absl::Hours(1), 7, "first");
    exit_after(absl::ZeroDuration(), 8, "");
    hang();
  };
  EXPECT_EXIT(arm_twice(), testing::ExitedWithCode(8), "^$");
}

TEST(EndSignals, EndTheProcessThatDoesNot) {
  const auto ignore_signal = [] {
    const auto signals = EndSignals::start("program", absl::Milliseconds(1));
    ::kill(::getpid(), SIGTERM);
    hang();
  };
  EXPECT_EXIT(ignore_signal(), testing::ExitedWithCode(128 + SIGTERM),
              "^program: it had not ended 1ms after signal 15");
}

TEST(EndSignals, WorkLearnsOfASignalBeforeAndMeanwhile) {
  const auto take = [](bool before) {
    const auto signals = EndSignals::start("program");
    if (before) {
      ::kill(::getpid(), SIGINT);
      if (signals->wait() != SIGINT) ::_exit(1);
    }
    absl::Notification told;
    const auto work = [&] {
      if (!before) ::kill(::getpid(), SIGINT);
      told.WaitForNotification();
    };
    ::_exit(signals->during(work, [&told](int) { told.Notify(); }) == SIGINT ? 0 : 2);
  };
  EXPECT_EXIT(take(true), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(take(false), testing::ExitedWithCode(0), "");
}

TEST(EndSignals, NoSignal) {
  const auto run = [] {
    const auto signals = EndSignals::start("program", absl::Milliseconds(1));
    const int signal = signals->during([] {}, [](int) { ::_exit(3); });
    ::_exit(signal == 0 && signals->wait(absl::Milliseconds(5)) == 0 ? 0 : 2);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gleaner
