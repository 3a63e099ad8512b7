#include "cli/launcher/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace gleaner::launcher {
namespace {

[[noreturn]] void hang() {
  while (true) ::pause();
}

// Ends this process with the status that run_guarded() returns.
[[noreturn]] void exit_guarded(const GuardOptions& options, const std::function<int()>& body) {
  const absl::StatusOr<int> status = run_guarded(options, body);
  ::_exit(status.ok() ? *status : 1);
}

TEST(Guard, ReturnsTheStatusOfTheChild) {
  EXPECT_EXIT(exit_guarded({"program"}, [] { return 7; }), testing::ExitedWithCode(7), "^$");
}

TEST(Guard, SaysThatTheChildWasKilled) {
  const auto kill_child = [] { return ::kill(::getpid(), SIGKILL); };
  EXPECT_EXIT(exit_guarded({"program"}, kill_child), testing::ExitedWithCode(128 + SIGKILL),
              "^program: its main process was killed by signal 9 \\(SIGKILL\\)");
}

TEST(Guard, KillsAChildThatHangsAfterASignal) {
  const auto hang_after_signal = []() -> int {
    ::kill(::getppid(), SIGTERM);
    hang();
  };
  EXPECT_EXIT(exit_guarded({"program", absl::Milliseconds(20)}, hang_after_signal),
              testing::ExitedWithCode(128 + SIGTERM), "^program: the job had not ended 20ms after signal 15");
}

}  // namespace
}  // namespace gleaner::launcher
