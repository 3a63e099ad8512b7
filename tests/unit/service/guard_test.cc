// Tests of Guard, which decides when a summer leaves a machine because of other load.
#include "summation-service/service/guard.h"

#include <gtest/gtest.h>

#include "summation-service/service/usage.h"

namespace gleaner::service {
namespace {

constexpr absl::Duration kEvery = absl::Milliseconds(100);

// A machine with some processors, and a guard that watches its use.
class Machine {
 public:
  explicit Machine(double processors, double yield_above = 0.8) : processors_(processors), guard_(yield_above) {}

  // Lets other processes and the summer use these numbers of processors. Returns the time until the guard decides to
  // leave, or infinity if the guard does not within `time`.
  absl::Duration run(double others, double own, absl::Duration time) {
    for (absl::Duration left = time; left > absl::ZeroDuration(); left -= kEvery) {
      const double seconds = absl::ToDoubleSeconds(kEvery);
      now_ += kEvery;
      usage_.busy += (others + own) * seconds;
      usage_.own += own * seconds;
      usage_.idle += (processors_ - others - own) * seconds;
      if (guard_.update(now_, usage_)) return time - left + kEvery;
    }
    return absl::InfiniteDuration();
  }
  const Guard& guard() const { return guard_; }
  Usage& usage() { return usage_; }

 private:
  const double processors_;
  Guard guard_;
  absl::Duration now_ = absl::Hours(5);
  Usage usage_{1000, 2000, 30};
};

constexpr absl::Duration kNever = absl::InfiniteDuration();

TEST(Guard, LeavesFullMachineSoon) {
  Machine machine(4);
  EXPECT_EQ(machine.run(1, 1, absl::Seconds(5)), kNever);
  EXPECT_LE(machine.run(3.98, 0.02, absl::Seconds(5)), absl::Seconds(1));
  EXPECT_NEAR(machine.guard().others_share(), 0.96, 0.04);
}

TEST(Guard, ShortBurstIsNoReason) {
  Machine machine(4);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(machine.run(4, 0, absl::Milliseconds(500)), kNever);
    EXPECT_EQ(machine.run(1, 1, absl::Seconds(1)), kNever);
  }
}

TEST(Guard, OwnUseIsNoReason) {
  Machine machine(2);
  EXPECT_EQ(machine.run(0.5, 1.5, absl::Seconds(5)), kNever) << "the machine is full, but other processes use little";
  EXPECT_NEAR(machine.guard().others_share(), 0.25, 0.001);
  EXPECT_NEAR(machine.guard().idle_share(), 0, 0.001);
}

TEST(Guard, StaysWithIdleTime) {
  Machine machine(10);
  EXPECT_EQ(machine.run(9.2, 0.2, absl::Seconds(5)), kNever);
  EXPECT_NE(machine.run(9.5, 0.2, absl::Seconds(5)), kNever);
}

TEST(Guard, TheLimitIsConfigurable) {
  EXPECT_EQ(Machine(2, 0.9).run(1.7, 0.3, absl::Seconds(5)), kNever);
  EXPECT_NE(Machine(2, 0.8).run(1.7, 0.3, absl::Seconds(5)), kNever);
}

TEST(Guard, CountersThatDecreaseAreIgnored) {
  Machine machine(2);
  machine.run(0.5, 0.5, absl::Seconds(2));
  machine.usage().busy -= 100;
  EXPECT_EQ(machine.run(0.5, 0.5, absl::Milliseconds(500)), kNever);
}

TEST(Usage, ParsesTheKernelsText) {
  const auto usage = parse_usage("cpu  100 20 30 4000 500 6 7 800 90 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n", 100);
  ASSERT_TRUE(usage.has_value());
  EXPECT_DOUBLE_EQ(usage->busy, 1.63);
  EXPECT_DOUBLE_EQ(usage->idle, 45);
  EXPECT_EQ(usage->own, 0);
  for (const char* text : {"", "cpu", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3 4 5 6", "cpu 1 2 three 4 5 6 7 8"}) {
    EXPECT_FALSE(parse_usage(text, 100).has_value()) << text;
  }
}

TEST(Usage, ReadsThisMachine) {
  const auto before = read_usage();
  ASSERT_TRUE(before.has_value());
  volatile double work = 1;
  for (int i = 0; i < 30'000'000; ++i) work = work + 1;
  const auto after = read_usage();
  EXPECT_GT(after->own, before->own);
  EXPECT_GE(after->busy + after->idle, before->busy + before->idle);
}

}  // namespace
}  // namespace gleaner::service
