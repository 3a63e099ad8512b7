// Efficiency and goodput: of the last minute, of each epoch, of the whole job; each step beside the bound in force
// then.
#include "operator/coordinator/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/plan/model.h"
#include "common/plan/partitioner.h"

namespace gleaner::coordinator {
namespace {

constexpr uint64_t kBytes = 100'000'000;
constexpr double kBits = 8e9;

plan::Fleet fleet_of(uint32_t summers) { return {std::vector<double>(4, kBits), std::vector<double>(summers, kBits)}; }

plan::Plan plan_of(uint32_t epoch, uint32_t summers) {
  plan::Plan plan = *plan::make_plan(fleet_of(summers), {}, {});
  plan.epoch = epoch;
  return plan;
}

double bound_of(uint32_t summers) { return plan::bound_seconds(fleet_of(summers), kBytes); }

// A job whose workers reach 90 % of whatever the bound is.
class Job {
 public:
  explicit Job(uint32_t ranks = 1) : progress(ranks) {}

  void follow(uint32_t epoch, uint32_t summers) {
    progress.on_plan(plan_of(epoch, summers));
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
    progress.on_report(rank, report_, now);
  }
  Figures window() const { return progress.window(now); }

  Progress progress;
  absl::Duration now = absl::Hours(1);

 private:
  Report report_;
  double step_seconds_ = 0;
};

TEST(Progress, SummersThatComeAndGoLeaveTheEfficiencyAlone) {
  Job job;
  uint32_t epoch = 0;
  for (const uint32_t summers : {0u, 2u, 4u, 0u, 4u, 1u}) {
    job.follow(++epoch, summers);
    job.run(absl::Seconds(45));
    EXPECT_NEAR(job.window().efficiency, 0.9, 1e-6) << summers << " summers";
    EXPECT_NEAR(job.progress.whole().efficiency, 0.9, 1e-6) << summers << " summers";
  }
  const std::vector<EpochFigures> epochs = job.progress.epochs();
  ASSERT_EQ(epochs.size(), 6u);
  EXPECT_EQ(epochs[2].summers, 4u);
  EXPECT_NEAR(epochs[2].figures.bound_seconds, bound_of(4), 1e-9);
  EXPECT_NEAR(epochs[2].figures.step_communication_seconds, bound_of(4) / 0.9, 1e-9);
  for (const EpochFigures& each : epochs) EXPECT_NEAR(each.figures.efficiency, 0.9, 1e-6);
}

TEST(Progress, TheWindowIsTheLastMinute) {
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
  EXPECT_LT(job.progress.whole().goodput_bytes_per_second, window.goodput_bytes_per_second);
}

TEST(Progress, WhereNoStepEndedWithinTheMinuteTheLastOneCounts) {
  Job job;
  job.follow(1, 2);
  for (int step = 0; step < 3; ++step) {
    job.step();
    job.now += absl::Minutes(5);
  }
  EXPECT_EQ(job.window().steps, 1u);
  EXPECT_NEAR(job.window().efficiency, 0.9, 1e-6);
}

TEST(Progress, SaysNothingBeforeAStepHasEnded) {
  Job job;
  job.progress.on_plan(plan_of(1, 2));
  EXPECT_EQ(job.window().basis, Basis::kNothingMeasured);
  job.progress.on_report(0, {1, kBytes, 3.0}, job.now);
  EXPECT_EQ(job.window().basis, Basis::kNothingMeasured) << "it began before the plan";
  EXPECT_EQ(job.progress.latest(0).steps, 1u);
}

TEST(Progress, TheSlowestWorkerCounts) {
  Job job(2);
  job.follow(1, 2);
  job.step(0);
  job.step(1, 3);
  EXPECT_NEAR(job.window().step_communication_seconds, 2 * bound_of(2) / 0.9, 1e-9);
}

TEST(Progress, ASmallStepIsLatencyBound) {
  Progress progress(1);
  progress.on_plan(plan_of(1, 0));
  const double bound = 1.5 * 1000 * 8 / kBits;
  progress.on_report(0, {100, 100'000, 0.1, {{1, 100, 100'000, 0, 0.1}}, bound / 2}, absl::Hours(1));
  const Figures figures = progress.whole();
  EXPECT_EQ(figures.basis, Basis::kLatency);
  EXPECT_EQ(figures.efficiency, 0);
  EXPECT_NEAR(figures.bound_seconds, bound, 1e-12);
  EXPECT_EQ(efficiency_text(figures.basis, figures.efficiency), "latency-bound");
}

TEST(Progress, ARoundTripThatIsLongMakesALargerStepLatencyBound) {
  for (const double round_trip : {0.0, 0.1}) {
    Progress progress(1);
    progress.on_plan(plan_of(1, 0));
    const double seconds = bound_of(0) / 0.5;
    progress.on_report(0, {1, kBytes, seconds, {{1, 1, kBytes, 0, seconds}}, round_trip}, absl::Hours(1));
    EXPECT_EQ(progress.whole().basis, round_trip > 0 ? Basis::kLatency : Basis::kBandwidth);
  }
}

TEST(Progress, AStepThatBeatsItsBoundSaysThatTheBandwidthIsWrong) {
  Progress progress(1);
  progress.on_plan(plan_of(1, 0));
  const double seconds = bound_of(0) * 0.99;
  progress.on_report(0, {1, kBytes, seconds, {{1, 1, kBytes, 0, seconds}}}, absl::Hours(1));
  EXPECT_EQ(progress.whole().basis, Basis::kBandwidthTooLow);
  EXPECT_EQ(progress.whole().efficiency, 0);
}

TEST(Progress, AnUnknownLinkMakesEfficiencyUnknownWhileItIsThere) {
  Job job;
  plan::Plan plan = plan_of(1, 2);
  plan.members[5].assumed = true;
  job.follow(1, 2);
  job.progress.on_plan(plan);
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

TEST(Progress, OneWorkerMovesNothing) {
  Progress progress(1);
  plan::Plan alone = *plan::make_plan({{kBits}, {}}, {}, {});
  alone.epoch = 1;
  progress.on_plan(alone);
  progress.on_report(0, {1, kBytes, 0.1, {{1, 1, kBytes, 0, 0.1}}}, absl::Hours(1));
  EXPECT_EQ(progress.whole().basis, Basis::kNothingMoves);
}

// The window begins with push_pulls in flight: their bytes were moved in part before it.
TEST(Progress, WhatWasInFlightWhenTheWindowBeganIsLeftOut) {
  Progress progress(1);
  progress.on_plan(plan_of(1, 0));
  absl::Duration now = absl::Hours(1);
  const double seconds = bound_of(0);
  Measured measured{1, 0, 0, kBytes, 0};
  for (int step = 0; step < 30; ++step) {
    now += absl::Seconds(10);
    ++measured.steps;
    measured.bytes += kBytes;
    // Every second report finds a push_pull nearly done, and the bytes it counts next took hardly any time.
    measured.communication_seconds += step % 2 == 0 ? 1.9 * seconds : 0.1 * seconds;
    progress.on_report(0, {measured.steps, measured.bytes, measured.communication_seconds, {measured}}, now);
    EXPECT_NE(progress.window(now).basis, Basis::kBandwidthTooLow) << step;
  }
}

TEST(Progress, AReportOfEpochsBeforeThisCoordinatorsTimeIsNoHarm) {
  Progress progress(1);
  progress.on_plan(plan_of(7, 2));
  const double seconds = bound_of(2) / 0.9;
  progress.on_report(0, {9, 9 * kBytes, 9 * seconds, {{6, 5, 5 * kBytes, 0, 1e-9}, {7, 4, 4 * kBytes, 0, 4 * seconds}}},
                     absl::Hours(1));
  EXPECT_NEAR(progress.whole().efficiency, 0.9, 1e-6);
  EXPECT_EQ(progress.epochs().size(), 1u);
}

TEST(Progress, EpochsStayWhenRanksSpeakOfLaterOnes) {
  Progress progress(1);
  Report report;
  for (uint32_t epoch = 1; epoch <= 20; ++epoch) {
    progress.on_plan(plan_of(epoch, epoch % 3));
    const double seconds = bound_of(epoch % 3) / 0.9;
    report.measured = {{epoch, 2, 2 * kBytes, 0, 2 * seconds}};
    progress.on_report(0, report, absl::Seconds(10 * epoch));
  }
  ASSERT_EQ(progress.epochs().size(), 20u);
  for (const EpochFigures& each : progress.epochs()) EXPECT_NEAR(each.figures.efficiency, 0.9, 1e-6);
  EXPECT_NEAR(progress.whole().efficiency, 0.9, 1e-6);
}

}  // namespace
}  // namespace gleaner::coordinator
