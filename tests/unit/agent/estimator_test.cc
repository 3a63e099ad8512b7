// Tests of the estimator of spare resources, with sequences of samples.
#include "agent/spare/estimator.h"

#include <gmock/gmock.h>

#include <limits>

namespace gleaner::spare {
namespace {

using api::SpeedSource;
using testing::DoubleNear;

constexpr double kGiB = 1024.0 * 1024 * 1024;

// A machine of 16 CPUs, 64 GiB and 10 Gbit/s. Its counters grow by the use that a test gives.
class Machine {
 public:
  Machine() {
    sample_.at = absl::Hours(5);
    sample_.allocatable_cpus = 16;
    sample_.allocatable_memory_bytes = 64 * kGiB;
    sample_.cpu_seconds = 1000;
    sample_.available_memory_bytes = 60 * kGiB;
    sample_.traffic = Traffic{1e12, 2e12};
    sample_.claimed_bits_per_second = 10e9;
    sample_.claimed_by = SpeedSource::kSysfs;
    last_ = estimator_.update(sample_);
  }

  // Takes a sample after time `by` with this use.
  Estimate step(double cpus, double received_bits = 0, double sent_bits = 0, absl::Duration by = absl::Seconds(1)) {
    const double seconds = absl::ToDoubleSeconds(by);
    sample_.at += by;
    *sample_.cpu_seconds += cpus * seconds;
    sample_.traffic->received_bytes += received_bits / 8 * seconds;
    sample_.traffic->sent_bytes += sent_bits / 8 * seconds;
    last_ = estimator_.update(sample_);
    return last_;
  }
  Estimate steps(int count, double cpus, double received_bits = 0, double sent_bits = 0) {
    for (int i = 0; i < count; ++i) step(cpus, received_bits, sent_bits);
    return last_;
  }
  void summer_uses(SummerUse& summer, double cpus, double received_bits, double sent_bits) {
    *summer.cpu_seconds += cpus;
    summer.traffic->received_bytes += received_bits / 8;
    summer.traffic->sent_bytes += sent_bits / 8;
  }
  Sample& sample() { return sample_; }
  Estimator& estimator() { return estimator_; }
  const Estimate& last() const { return last_; }

 private:
  Estimator estimator_{EstimatorOptions{}};
  Sample sample_;
  Estimate last_;
};

TEST(Estimator, SparesNothingBeforeItHasMeasured) {
  Machine machine;
  EXPECT_FALSE(machine.last().measured);
  EXPECT_EQ(machine.last().spare, api::Spare{});
}

TEST(Estimator, IdleMachineSparesAllButTheMargin) {
  Machine machine;
  const Estimate estimate = machine.step(0);
  EXPECT_TRUE(estimate.measured);
  EXPECT_NEAR(estimate.spare.cpus, 16 * 0.9, 1e-9);
  EXPECT_NEAR(estimate.spare.bits_per_second, 9e9, 1);
  EXPECT_NEAR(static_cast<double>(estimate.spare.memory_bytes), (60 - 6.4) * kGiB, 2) << "60 GiB are available";
}

TEST(Estimator, TheLargerOfRequestsAndUseCounts) {
  Machine machine;
  machine.sample().requested_cpus = 6;
  EXPECT_NEAR(machine.step(2).spare.cpus, 14.4 - 6, 1e-9) << "requests count whether they are used or not";
  Machine busy;
  busy.sample().requested_cpus = 6;
  const Estimate estimate = busy.step(10);
  EXPECT_NEAR(estimate.spare.cpus, 14.4 - 10, 1e-9) << "use counts whether it was requested or not";
  EXPECT_NEAR(estimate.used_cpus, 10, 1e-9);
}

TEST(Estimator, NeverSparesLessThanNothing) {
  Machine machine;
  machine.sample().requested_cpus = 30;
  machine.sample().requested_memory_bytes = 80 * kGiB;
  EXPECT_EQ(machine.step(40, 20e9, 20e9).spare.cpus, 0);
  EXPECT_EQ(machine.last().spare.memory_bytes, 0u);
  EXPECT_GE(machine.last().spare.bits_per_second, 0);
}

TEST(Estimator, BandwidthIsThatOfTheBusierDirection) {
  Machine machine;
  const Estimate estimate = machine.step(0, 1e9, 4e9);
  EXPECT_NEAR(estimate.used_bits_per_second, 4e9, 1);
  EXPECT_NEAR(estimate.spare.bits_per_second, 5e9, 1);
}

TEST(Estimator, ShrinksFastAndGrowsSlowly) {
  Machine machine;
  machine.step(0);
  EXPECT_LT(machine.steps(6, 12, 0, 8e9).spare.cpus, 2.4 + 12 * 0.06) << "three time constants of 2 s: 95 %";
  EXPECT_LT(machine.last().spare.bits_per_second, 1e9 + 8e9 * 0.06);
  const double low = machine.last().spare.cpus;
  EXPECT_LT(machine.steps(6, 0).spare.cpus, low + 12 * 0.11) << "a tenth of the time constant of 60 s";
  EXPECT_GT(machine.steps(54, 0).spare.cpus, 14.4 - 12 * 0.4) << "about two thirds after one";
  EXPECT_GT(machine.steps(240, 0).spare.cpus, 14.3) << "finally all CPUs are spare again";
}

TEST(Estimator, SmoothingGoesByTimeNotBySamples) {
  Machine often, seldom;
  often.step(0), seldom.step(0);
  for (int i = 0; i < 100; ++i) often.step(8, 0, 0, absl::Milliseconds(100));
  for (int i = 0; i < 5; ++i) seldom.step(8, 0, 0, absl::Seconds(2));
  EXPECT_NEAR(often.last().spare.cpus, seldom.last().spare.cpus, 0.01);
}

TEST(Estimator, UseBySummersCountsAsSpare) {
  Machine machine;
  SummerUse summer{"uid-1", 50.0, 2 * kGiB, Traffic{7e9, 8e9}};
  machine.sample().summers = {summer};
  machine.step(0);
  for (int i = 0; i < 5; ++i) {
    machine.summer_uses(machine.sample().summers[0], 3, 2e9, 6e9);
    machine.step(4, 2.5e9, 6e9);
  }
  EXPECT_NEAR(machine.last().used_cpus, 1, 1e-9);
  EXPECT_NEAR(machine.last().summers_cpus, 3, 1e-9);
  EXPECT_NEAR(machine.last().used_bits_per_second, 0.5e9, 1);
  EXPECT_NEAR(machine.last().summers_bits_per_second, 6e9, 1);
  EXPECT_GT(machine.last().spare.cpus, 13) << "summers' use counts as spare";
}

TEST(Estimator, UseOfASummerThatCannotBeReadIsNotSpare) {
  Machine machine;
  machine.sample().summers = {{"uid-1", std::nullopt, 0, std::nullopt}};
  machine.step(0);
  const Estimate estimate = machine.step(4, 0, 6e9);
  EXPECT_NEAR(estimate.used_cpus, 4, 1e-9);
  EXPECT_NEAR(estimate.used_bits_per_second, 6e9, 1);
}

TEST(Estimator, AJoiningOrLeavingSummerDoesNotDistortTheEstimate) {
  Machine machine;
  machine.step(2);
  machine.sample().summers = {{"uid-1", 1e6, 0, Traffic{1e15, 1e15}}};  // counters that have run for a long time
  EXPECT_NEAR(machine.step(2).used_cpus, 2, 1e-9);
  machine.sample().summers.clear();
  EXPECT_NEAR(machine.step(2).used_cpus, 2, 1e-9);
  machine.sample().summers = {{"uid-1", 0.0, 0, Traffic{0, 0}}};  // the container of the same pod was restarted
  EXPECT_NEAR(machine.step(2).used_cpus, 2, 1e-9);
}

TEST(Estimator, ResetCountersLeaveTheLastRateInForce) {
  Machine machine;
  machine.step(4, 0, 3e9);
  machine.sample().cpu_seconds = 1;
  machine.sample().traffic = Traffic{0, 0};
  const Estimate estimate = machine.step(0);
  EXPECT_NEAR(estimate.used_cpus, 4, 1e-9);
  EXPECT_NEAR(estimate.used_bits_per_second, 3e9, 1);
  EXPECT_FALSE(estimate.speed.contradicted);
  EXPECT_NEAR(machine.step(1, 0, 1e9).used_cpus, 1, 1e-9);
}

TEST(Estimator, MissingReadingsLeaveTheLastOnesInForce) {
  Machine machine;
  machine.step(4, 0, 3e9);
  machine.sample().cpu_seconds.reset();
  machine.sample().traffic.reset();
  machine.sample().at += absl::Seconds(1);
  const Estimate estimate = machine.estimator().update(machine.sample());
  EXPECT_NEAR(estimate.used_cpus, 4, 1e-9);
  EXPECT_NEAR(estimate.used_bits_per_second, 3e9, 1);
}

TEST(Estimator, AClockThatStopsOrGoesBackChangesNothing) {
  Machine machine;
  const Estimate before = machine.step(4, 0, 3e9);
  for (const absl::Duration by : {absl::ZeroDuration(), absl::Seconds(-3600)}) {
    machine.sample().at += by;
    *machine.sample().cpu_seconds += 500;
    const Estimate after = machine.estimator().update(machine.sample());
    EXPECT_NEAR(after.used_cpus, before.used_cpus, 1e-9);
    EXPECT_EQ(after.spare, before.spare);
  }
}

TEST(Estimator, LongGapIsAveragedOver) {
  Machine machine;
  machine.step(4);
  EXPECT_NEAR(machine.step(2, 0, 0, absl::Hours(2)).used_cpus, 2, 1e-6);
}

TEST(Estimator, PressureReducesSparesOnlyOnABusyMachine) {
  Machine idle;
  idle.sample().cpu_pressure = 60;
  EXPECT_NEAR(idle.step(1).spare.cpus, 13.4, 1e-9) << "tasks of an idle machine wait for their own quota";
  EXPECT_EQ(idle.last().cpu_pressure, 60);
  Machine busy, easy, hard;
  busy.sample().cpu_pressure = 30;
  EXPECT_NEAR(busy.step(10).spare.cpus, 4.4 / 2, 1e-9);
  easy.sample().cpu_pressure = 9;
  EXPECT_NEAR(easy.step(10).spare.cpus, 4.4, 1e-9);
  hard.sample().cpu_pressure = 50;
  EXPECT_EQ(hard.step(10).spare.cpus, 0);
  Machine unknown;
  EXPECT_EQ(unknown.step(10).cpu_pressure, -1);
}

TEST(Estimator, UnknownSpeedSparesNoBandwidth) {
  Machine machine;
  machine.sample().claimed_bits_per_second = 0;
  machine.sample().claimed_by = SpeedSource::kUnknown;
  const Estimate estimate = machine.steps(20, 0, 1e9, 0);
  EXPECT_EQ(estimate.spare.bits_per_second, 0);
  EXPECT_FALSE(estimate.speed.contradicted);
  EXPECT_GT(estimate.spare.cpus, 0);
}

TEST(Estimator, ANicFasterThanItsClaimHasTheObservedSpeed) {
  Machine machine;
  machine.sample().claimed_bits_per_second = 1e9;
  const Estimate estimate = machine.steps(11, 0, 4e9, 1e9);
  EXPECT_TRUE(estimate.speed.contradicted);
  EXPECT_EQ(estimate.speed.source, SpeedSource::kMeasured);
  EXPECT_NEAR(estimate.speed.bits_per_second, 4e9, 1e3);
  EXPECT_EQ(estimate.spare.bits_per_second, 0) << "the whole speed is in use";
}

}  // namespace
}  // namespace gleaner::spare
