// Tests of efficiency and goodput: in the last minute, in each epoch, and in the whole job. Each step is compared with
// the bound in force at its time.
#include "coordinator/measure/efficiency_meter.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/coordinator/measured_plans.h"

namespace gleaner::coordinator {
namespace {

// A job whose workers reach 90 % of the bound of each plan.
class Job {
 public:
  explicit Job(uint32_t ranks = 1) : meter(ranks) {}

  void follow(uint32_t epoch, uint32_t summers) {
    meter.on_plan(plan_of(epoch, summers));
    report_.measured.push_back({epoch});
    step_seconds_ = bound_of(summers) / 0.9;
  }
  void run(absl::Duration time) {
    for (const absl::Duration end = now + time; now < end; now += absl::Seconds(1)) step();
  }
  void step(uint32_t rank = 0, double slower = 1) {
    Measured& measured = report_.measured.back();
    ++report_.steps;
    report_.bytes += kBytes;
    report_.communication_seconds += slower * step_seconds_;
    ++measured.steps;
    measured.bytes += kBytes;
    measured.communication_seconds += slower * step_seconds_;
    meter.on_report(rank, report_, now);
  }
  Figures window() const { return meter.window(now); }

  EfficiencyMeter meter;
  absl::Duration now = absl::Hours(1);

 private:
  Report report_;
  double step_seconds_ = 0;
};

TEST(EfficiencyMeter, JoiningAndLeavingSummersDoNotChangeTheEfficiency) {
  Job job;
  uint32_t epoch = 0;
  for (const uint32_t summers : {0u, 2u, 4u, 0u, 4u, 1u}) {
    job.follow(++epoch, summers);
    job.run(absl::Seconds(45));
    EXPECT_NEAR(job.window().efficiency, 0.9, 1e-6) << summers << " summers";
    EXPECT_NEAR(job.meter.whole().efficiency, 0.9, 1e-6) << summers << " summers";
  }
  const std::vector<EpochFigures> epochs = job.meter.epochs();
  ASSERT_EQ(epochs.size(), 6u);
  EXPECT_EQ(epochs[2].summers, 4u);
  EXPECT_NEAR(epochs[2].figures.bound_seconds, bound_of(4), 1e-9);
  EXPECT_NEAR(epochs[2].figures.step_communication_seconds, bound_of(4) / 0.9, 1e-9);
  for (const EpochFigures& each : epochs) EXPECT_NEAR(each.figures.efficiency, 0.9, 1e-6);
}

TEST(EfficiencyMeter, TheWindowIsTheLastMinute) {
  Job job;
  job.follow(1, 0);
  job.run(absl::Minutes(10));
  job.follow(2, 4);
  job.run(absl::Seconds(75));
  const Figures window = job.window();
  EXPECT_NEAR(window.bound_seconds, bound_of(4), 1e-9) << "nothing of epoch 1 is left in it";
  EXPECT_NEAR(window.goodput_bytes_per_second, kBytes * 0.9 / bound_of(4), 1);
  EXPECT_GE(window.steps, 55u);
  EXPECT_LE(window.steps, 70u);
  EXPECT_LT(job.meter.whole().goodput_bytes_per_second, window.goodput_bytes_per_second);
}

TEST(EfficiencyMeter, TheWindowHasStepsPerSecond) {
  Job job;
  job.follow(1, 0);
  job.step();
  EXPECT_EQ(job.window().steps_per_second, 0) << "the time of the first step is unknown";
  job.run(absl::Seconds(20));
  EXPECT_NEAR(job.window().steps_per_second, 1, 0.1);
  for (const absl::Duration end = job.now + absl::Minutes(2); job.now < end; job.now += absl::Milliseconds(250)) {
    job.step();
  }
  EXPECT_NEAR(job.window().steps_per_second, 4, 0.1);
}

TEST(EfficiencyMeter, WithoutAStepInTheLastMinuteTheLastStepCounts) {
  Job job;
  job.follow(1, 2);
  for (int step = 0; step < 3; ++step) {
    job.step();
    job.now += absl::Minutes(5);
  }
  EXPECT_EQ(job.window().steps, 1u);
  EXPECT_NEAR(job.window().efficiency, 0.9, 1e-6);
}

TEST(EfficiencyMeter, HasNoFiguresBeforeAStepHasEnded) {
  Job job;
  job.meter.on_plan(plan_of(1, 2));
  EXPECT_EQ(job.window().basis, Basis::kNothingMeasured);
  job.meter.on_report(0, {1, kBytes, 3.0}, job.now);
  EXPECT_EQ(job.window().basis, Basis::kNothingMeasured) << "the step began before the plan";
  EXPECT_EQ(job.meter.latest(0).steps, 1u);
}

TEST(EfficiencyMeter, BytesOfAStepAreThoseOfItsPushPulls) {
  EfficiencyMeter meter(1);
  meter.on_plan(plan_of(1, 2));
  const double seconds = bound_of(2) / 0.9;
  // Requests are always in flight, so fewer bytes are known to have come in the time of these steps.
  meter.on_report(0,
                  {4, 4 * kBytes, 4 * seconds, {{1, 4, 3 * kBytes, kBytes, 4 * seconds, 4 * kBytes, 4, 12 * kBytes}}},
                  absl::Hours(1));
  EXPECT_DOUBLE_EQ(meter.whole().bytes_per_step, kBytes);
  EXPECT_DOUBLE_EQ(meter.whole().dense_bytes_per_step, 4 * kBytes);
  EXPECT_NEAR(meter.whole().goodput_bytes_per_second, kBytes / seconds, 1);
}

TEST(EfficiencyMeter, ASmallStepIsLatencyBound) {
  EfficiencyMeter meter(1);
  meter.on_plan(plan_of(1, 0));
  const double bound = 1.5 * 1000 * 8 / kBits;
  meter.on_report(0, {100, 100'000, 0.1, {{1, 100, 100'000, 0, 0.1}}, bound / 2}, absl::Hours(1));
  const Figures figures = meter.whole();
  EXPECT_EQ(figures.basis, Basis::kLatency);
  EXPECT_EQ(figures.efficiency, 0);
  EXPECT_NEAR(figures.bound_seconds, bound, 1e-12);
  EXPECT_EQ(efficiency_text(figures.basis, figures.efficiency), "latency-bound");
}

TEST(EfficiencyMeter, ALongRoundTripMakesALargerStepLatencyBound) {
  for (const double round_trip : {0.0, 0.1}) {
    EfficiencyMeter meter(1);
    meter.on_plan(plan_of(1, 0));
    const double seconds = bound_of(0) / 0.5;
    meter.on_report(0, {1, kBytes, seconds, {{1, 1, kBytes, 0, seconds}}, round_trip}, absl::Hours(1));
    EXPECT_EQ(meter.whole().basis, round_trip > 0 ? Basis::kLatency : Basis::kBandwidth);
  }
}

TEST(EfficiencyMeter, TheMedianOverheadOfAMessageCounts) {
  EfficiencyMeter meter(5);
  EXPECT_EQ(meter.overhead_seconds(), 0);
  const std::vector<double> overheads = {4e-6, 0, 900e-6, 5e-6};  // one rank is noisy, one does not measure
  for (uint32_t rank = 0; rank < overheads.size(); ++rank) {
    Report report;
    report.overhead_seconds = overheads[rank];
    meter.on_report(rank, report, absl::Seconds(1));
  }
  EXPECT_EQ(meter.overhead_seconds(), 5e-6);
}

TEST(EfficiencyMeter, AStepFasterThanItsBoundShowsThatTheBandwidthIsWrong) {
  EfficiencyMeter meter(1);
  meter.on_plan(plan_of(1, 0));
  const double seconds = bound_of(0) * 0.99;
  meter.on_report(0, {1, kBytes, seconds, {{1, 1, kBytes, 0, seconds}}}, absl::Hours(1));
  EXPECT_EQ(meter.whole().basis, Basis::kBandwidthTooLow);
  EXPECT_EQ(meter.whole().efficiency, 0);
}

TEST(EfficiencyMeter, AnUnknownLinkMakesEfficiencyUnknownWhileItIsThere) {
  Job job;
  plan::Plan plan = plan_of(1, 2);
  plan.members[5].bandwidth_assumed = true;
  job.follow(1, 2);
  job.meter.on_plan(plan);
  job.run(absl::Seconds(30));
  EXPECT_EQ(job.window().basis, Basis::kUnknownBandwidth);
  EXPECT_EQ(job.window().bound_seconds, 0);
  EXPECT_GT(job.window().goodput_bytes_per_second, 0);
  job.follow(2, 0);
  job.run(absl::Seconds(30));
  EXPECT_EQ(job.window().basis, Basis::kUnknownBandwidth);
  job.run(absl::Seconds(40));
  EXPECT_EQ(job.window().basis, Basis::kBandwidth);
}

TEST(EfficiencyMeter, BoundIsThatOfTheStrategyInForce) {
  EfficiencyMeter meter(1);
  plan::Plan plan = plan_of(1, 2);
  plan.schedules = {{.algorithm = "ring"}};
  plan.tensors = {{.name = "a", .elements = kBytes / 4, .schedule = 0}};
  meter.on_plan(plan);
  // The bound of a ring of 4 workers, whether there are summers or not.
  const double ring = 1.5 * kBytes * 8 / kBits;
  ASSERT_GT(ring, bound_of(2));
  meter.on_report(0, {1, kBytes, ring / 0.9, {{1, 1, kBytes, 0, ring / 0.9}}}, absl::Hours(1));
  const Figures figures = meter.whole();
  EXPECT_NEAR(figures.bound_seconds, ring, ring * 1e-9);
  EXPECT_NEAR(figures.bound_seconds_without_summers, ring, ring * 1e-9);
  EXPECT_NEAR(figures.efficiency, 0.9, 1e-6);
  // The next plan has owners sum the tensor.
  plan.epoch = 2;
  plan.tensors[0].schedule.reset();
  meter.on_plan(plan);
  EXPECT_NEAR(meter.bound_of(plan).with_summers * kBytes, bound_of(2), ring * 1e-9);
}

TEST(EfficiencyMeter, OneWorkerMovesNothing) {
  EfficiencyMeter meter(1);
  plan::Plan alone = *plan::make_plan({{kBits}, {}}, {}, {});
  alone.epoch = 1;
  meter.on_plan(alone);
  meter.on_report(0, {1, kBytes, 0.1, {{1, 1, kBytes, 0, 0.1}}}, absl::Hours(1));
  EXPECT_EQ(meter.whole().basis, Basis::kNothingMoves);
}

// When the window begins, push_pulls are in flight whose bytes were moved in part before the window.
TEST(EfficiencyMeter, AStepInFlightAtTheBeginOfTheWindowIsLeftOut) {
  EfficiencyMeter meter(1);
  meter.on_plan(plan_of(1, 0));
  absl::Duration now = absl::Hours(1);
  const double seconds = bound_of(0);
  Measured measured{1, 0, 0, kBytes, 0};
  for (int step = 0; step < 30; ++step) {
    now += absl::Seconds(10);
    ++measured.steps;
    measured.bytes += kBytes;
    // In every second report a push_pull is almost done, so its bytes, which the next report counts, take hardly any
    // time.
    measured.communication_seconds += step % 2 == 0 ? 1.9 * seconds : 0.1 * seconds;
    meter.on_report(0, {measured.steps, measured.bytes, measured.communication_seconds, {measured}}, now);
    EXPECT_NE(meter.window(now).basis, Basis::kBandwidthTooLow) << step;
  }
}

TEST(EfficiencyMeter, ReportsOfEpochsBeforeThisCoordinatorAreIgnored) {
  EfficiencyMeter meter(1);
  meter.on_plan(plan_of(7, 2));
  const double seconds = bound_of(2) / 0.9;
  meter.on_report(0, {9, 9 * kBytes, 9 * seconds, {{6, 5, 5 * kBytes, 0, 1e-9}, {7, 4, 4 * kBytes, 0, 4 * seconds}}},
                  absl::Hours(1));
  EXPECT_NEAR(meter.whole().efficiency, 0.9, 1e-6);
  EXPECT_EQ(meter.epochs().size(), 1u);
}

TEST(EfficiencyMeter, ReportsOfLaterEpochsDoNotRemoveEarlierOnes) {
  EfficiencyMeter meter(1);
  Report report;
  for (uint32_t epoch = 1; epoch <= 20; ++epoch) {
    meter.on_plan(plan_of(epoch, epoch % 3));
    const double seconds = bound_of(epoch % 3) / 0.9;
    report.measured = {{epoch, 2, 2 * kBytes, 0, 2 * seconds}};
    meter.on_report(0, report, absl::Seconds(10 * epoch));
  }
  ASSERT_EQ(meter.epochs().size(), 20u);
  for (const EpochFigures& each : meter.epochs()) EXPECT_NEAR(each.figures.efficiency, 0.9, 1e-6);
  EXPECT_NEAR(meter.whole().efficiency, 0.9, 1e-6);
}

}  // namespace
}  // namespace gleaner::coordinator
