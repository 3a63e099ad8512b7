#include "common/kube/work_queue.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/time/clock.h"
#include "common/base/env.h"
#include "tests/manual_clock.h"

namespace gleaner::kube {
namespace {

TEST(WorkQueue, GivesEachKeyOnceInOrder) {
  ManualClock clock;
  WorkQueue queue(clock);
  queue.add("a");
  queue.add("b");
  queue.add("a");
  EXPECT_EQ(queue.waiting(), 2U);
  EXPECT_EQ(queue.next(), "a");
  EXPECT_EQ(queue.next(), "b");
  EXPECT_EQ(queue.waiting(), 0U);
}

TEST(WorkQueue, AKeyAddedWhileInProgressIsReturnedOnceMoreAfterwards) {
  ManualClock clock;
  WorkQueue queue(clock);
  queue.add("a");
  ASSERT_EQ(queue.next(), "a");
  queue.add("a");
  queue.add("a");
  EXPECT_EQ(queue.waiting(), 0U) << "two workers would have the same key";
  queue.done("a");
  EXPECT_EQ(queue.waiting(), 1U);
  ASSERT_EQ(queue.next(), "a");
  queue.done("a");
  EXPECT_EQ(queue.waiting(), 0U);
}

TEST(WorkQueue, TheEarliestOfSeveralDelaysCounts) {
  ManualClock clock;
  WorkQueue queue(clock);
  queue.add_after("a", absl::Seconds(10));
  queue.add_after("a", absl::Seconds(3));
  queue.add_after("a", absl::Seconds(20));
  clock.advance(absl::Milliseconds(2999));
  EXPECT_EQ(queue.waiting(), 0U);
  clock.advance(absl::Milliseconds(1));
  EXPECT_EQ(queue.waiting(), 1U);
  EXPECT_EQ(queue.next(), "a");
  queue.done("a");
  clock.advance(absl::Seconds(60));
  EXPECT_EQ(queue.waiting(), 0U) << "the longer delays should be dropped";
}

TEST(WorkQueue, FailuresDoubleTheDelayUntilForgotten) {
  ManualClock clock;
  WorkQueue queue(clock, absl::Milliseconds(30));
  for (const int expected_ms : {5, 10, 20, 30, 30}) {
    queue.add_rate_limited("a");
    clock.advance(absl::Milliseconds(expected_ms) - absl::Microseconds(1));
    EXPECT_EQ(queue.waiting(), 0U) << expected_ms;
    clock.advance(absl::Microseconds(1));
    EXPECT_EQ(queue.waiting(), 1U) << expected_ms;
    ASSERT_EQ(queue.next(), "a");
    queue.done("a");
  }
  EXPECT_EQ(queue.failures("a"), 5U);
  queue.forget("a");
  EXPECT_EQ(queue.failures("a"), 0U);
  queue.add_rate_limited("a");
  clock.advance(absl::Milliseconds(5));
  EXPECT_EQ(queue.waiting(), 1U);
}

TEST(WorkQueue, ManyFailuresDoNotOverflow) {
  ManualClock clock;
  WorkQueue queue(clock);
  for (int i = 0; i < 200; ++i) queue.add_rate_limited("a");
  clock.advance(absl::Minutes(5));
  EXPECT_EQ(queue.waiting(), 1U);
}

TEST(WorkQueue, AWaitingWorkerWakesForADelayThatBecameShorter) {
  SystemEnv env({.component = "test", .level = LogLevel::kOff});
  WorkQueue queue(*env.env().clock);
  queue.add_after("late", absl::Hours(1));
  std::optional<std::string> got;
  std::thread worker([&] { got = queue.next(); });
  absl::SleepFor(absl::Milliseconds(50));  // the worker waits for the other key by then
  queue.add_after("soon", absl::Milliseconds(20));
  worker.join();  // the time limit of the test is the deadline
  EXPECT_EQ(got, "soon");
}

TEST(WorkQueue, ShutDownEndsWaitingCallersAndRefusesKeys) {
  SystemEnv env({.component = "test", .level = LogLevel::kOff});
  WorkQueue queue(*env.env().clock);
  std::optional<std::string> got = "something";
  std::thread worker([&] { got = queue.next(); });
  queue.shut_down();
  worker.join();
  EXPECT_FALSE(got.has_value());
  queue.add("a");
  EXPECT_FALSE(queue.next().has_value());
}

}  // namespace
}  // namespace gleaner::kube
