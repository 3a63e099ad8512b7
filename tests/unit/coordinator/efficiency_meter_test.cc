// Tests of efficiency and goodput: in the last minute, in each epoch, and in the whole job. Each step is compared with
// the bound in force at its time.
#include "coordinator/efficiency_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "common/plan/model.h"
#include "common/plan/partitioner.h"

namespace gleaner::coordinator {
namespace {

using ::testing::IsEmpty;

constexpr uint64_t kBytes = 100'000'000;
constexpr double kBits = 8e9;

plan::Fleet fleet_of(uint32_t summers) { return {std::vector<double>(4, kBits), std::vector<double>(summers, kBits)}; }

plan::Plan plan_of(uint32_t epoch, uint32_t summers) {
  plan::Plan plan = *plan::make_plan(fleet_of(summers), {}, {});
  plan.epoch = epoch;
  return plan;
}

double bound_of(uint32_t summers) { return plan::bound_seconds(fleet_of(summers), kBytes); }

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

void expect_waits_only_for(const EfficiencyMeter& meter, uint32_t rank, double seconds) {
  const std::vector<WaitedFor> waited = meter.waited_for(4);
  ASSERT_EQ(waited.size(), 1u);
  EXPECT_EQ(waited[0].rank, rank);
  EXPECT_NEAR(waited[0].seconds, seconds, 1e-9);
}

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

// Reports steps of one rank, which took these seconds in all.
void report(EfficiencyMeter& meter, uint32_t rank, uint64_t steps, double seconds, absl::Duration now,
            uint64_t step_bytes = kBytes) {
  const uint64_t bytes = steps * step_bytes;
  meter.on_report(rank, {steps, bytes, seconds, {{1, steps, bytes, 0, seconds, bytes}}}, now);
}

TEST(EfficiencyMeter, TheWaitForALateRankIsNoCommunication) {
  EfficiencyMeter meter(3);
  meter.on_plan(plan_of(1, 2));
  const double step = bound_of(2) / 0.9;
  absl::Duration now = absl::Hours(1);
  for (uint64_t steps = 1; steps <= 100; ++steps) {
    now += absl::Seconds(1);
    // Rank 1 comes 13 s late to step 50.
    const double wait = steps < 50 ? 0 : 13;
    report(meter, 0, steps, static_cast<double>(steps) * step + wait, now);
    report(meter, 1, steps, static_cast<double>(steps) * step, now);
    report(meter, 2, steps, static_cast<double>(steps) * step + wait, now);
  }
  const Figures whole = meter.whole();
  EXPECT_NEAR(whole.step_communication_seconds, step, 1e-9);
  EXPECT_NEAR(whole.efficiency, 0.9, 1e-6);
  EXPECT_NEAR(meter.window(now).step_communication_seconds, step, 1e-9);
  EXPECT_NEAR(meter.epochs().at(0).figures.step_communication_seconds, step, 1e-9);
  expect_waits_only_for(meter, 1, 13);
}

TEST(EfficiencyMeter, WaitsForSeveralLateRanksAreTold) {
  EfficiencyMeter meter(2);
  meter.on_plan(plan_of(1, 2));
  const double step = bound_of(2) / 0.9;
  double waits[2] = {};
  for (uint64_t steps = 1; steps <= 40; ++steps) {
    if (steps % 10 == 0) waits[0] += 2;  // rank 1 is late
    if (steps % 10 == 5) waits[1] += 1;  // rank 0 is late
    for (uint32_t rank = 0; rank < 2; ++rank) {
      report(meter, rank, steps, static_cast<double>(steps) * step + waits[rank], absl::Seconds(steps));
    }
  }
  EXPECT_NEAR(meter.whole().step_communication_seconds, step, 1e-9);
  const std::vector<WaitedFor> waited = meter.waited_for(4);
  ASSERT_EQ(waited.size(), 2u);
  EXPECT_EQ(waited[0].rank, 1u);
  EXPECT_NEAR(waited[0].seconds, 8, 1e-9);
  EXPECT_NEAR(waited[1].seconds, 4, 1e-9);
  EXPECT_EQ(meter.waited_for(1).size(), 1u);
}

// A synchronous job whose ranks report four times a second, each at other moments. Every step computes for a while and
// then communicates, for a third or for the whole of `communication` at random, and with it all ranks that wait for
// rank 0, which is late by `late`.
struct Steps {
  uint32_t ranks = 2;
  double compute = 0.18;
  double communication = 0.06;
  double late = 0;
};

void run(EfficiencyMeter& meter, const Steps& job, double seconds) {
  constexpr double kReportEvery = 0.25;
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same job in each run
  std::vector<double> next(job.ranks), took(job.ranks);
  for (uint32_t rank = 0; rank < job.ranks; ++rank) next[rank] = kReportEvery * rank / job.ranks;
  uint64_t steps = 0;
  for (double now = 0; now < seconds;) {
    const double communication = random() % 2 == 0 ? job.communication : job.communication / 3;
    const double end = now + job.compute + job.late + communication;
    for (uint32_t rank = 0; rank < job.ranks; ++rank) {
      for (; next[rank] < end; next[rank] += kReportEvery) {
        if (steps > 0) report(meter, rank, steps, took[rank], absl::Seconds(3600 + next[rank]), 1000);
      }
      took[rank] += communication + (rank == 0 ? 0 : job.late);
    }
    now = end;
    ++steps;
  }
}

TEST(EfficiencyMeter, JitterIsNoWait) {
  for (const uint32_t ranks : {2, 8}) {
    for (const double scale : {4.0, 1.0, 0.5, 0.1, 0.02}) {
      EfficiencyMeter meter(ranks);
      meter.on_plan(plan_of(1, 2));
      run(meter, {.ranks = ranks, .compute = 0.18 * scale, .communication = 0.06 * scale}, 120);
      EXPECT_EQ(meter.whole().step_wait_seconds, 0) << ranks << " ranks, " << scale;
      EXPECT_THAT(meter.waited_for(4), IsEmpty());
      EXPECT_GT(meter.window(absl::Seconds(3720)).steps, 40 / (0.24 * scale)) << "steps settle";
    }
  }
}

TEST(EfficiencyMeter, ARankThatIsAlwaysLateIsFoundInReportsAtOtherSteps) {
  for (const uint32_t ranks : {2, 8}) {
    for (const double scale : {4.0, 1.0, 0.5, 0.1, 0.02}) {
      EfficiencyMeter meter(ranks);
      meter.on_plan(plan_of(1, 2));
      const double late = 0.1 * scale;
      run(meter, {.ranks = ranks, .compute = 0.18 * scale, .communication = 0.06 * scale, .late = late}, 240);
      EXPECT_NEAR(meter.whole().step_wait_seconds, late, 0.05 * late) << ranks << " ranks, " << scale;
      ASSERT_EQ(meter.waited_for(4).size(), 1u);
      EXPECT_EQ(meter.waited_for(4)[0].rank, 0u);
    }
  }
}

// Rank 0 waits for rank 1 in step 3. The steps of rank 0 settle before rank 1 reports them.
TEST(EfficiencyMeter, ALateReportIsComparedWithReportsOfTheSameSteps) {
  EfficiencyMeter meter(2);
  meter.on_plan(plan_of(1, 2));
  const double step = bound_of(2) / 0.9;
  const auto at = [&](uint32_t rank, uint64_t steps, double wait, int second) {
    report(meter, rank, steps, static_cast<double>(steps) * step + wait, absl::Seconds(second));
  };
  at(0, 1, 0, 0);
  at(1, 1, 0, 0);
  at(0, 2, 0, 1);
  at(0, 3, 9, 7);
  EXPECT_EQ(meter.window(absl::Seconds(7)).steps, 3u) << "steps 2 and 3 settle without a wait";
  at(1, 2, 0, 8);
  at(0, 4, 9, 9);
  at(1, 3, 0, 10);
  at(1, 4, 0, 10);
  at(0, 5, 9, 11);
  at(1, 5, 0, 11);
  EXPECT_NEAR(meter.whole().step_communication_seconds, step, 1e-9);
  expect_waits_only_for(meter, 1, 9);
}

TEST(EfficiencyMeter, TheWindowEndsWithTheLastSettledStep) {
  EfficiencyMeter meter(2);
  meter.on_plan(plan_of(1, 2));
  const double step = bound_of(2) / 0.9;
  report(meter, 0, 1, step, absl::Seconds(1));
  report(meter, 1, 1, step, absl::Seconds(1));
  report(meter, 0, 2, 2 * step + 13, absl::Seconds(2));  // rank 1, which is late, has not reported yet
  EXPECT_EQ(meter.window(absl::Seconds(2)).steps, 1u);
  EXPECT_NEAR(meter.window(absl::Seconds(2)).step_communication_seconds, step, 1e-9);
}

TEST(EfficiencyMeter, RanksThatCountStepsFromOtherStartsAreNotCompared) {
  EfficiencyMeter meter(2);
  meter.on_plan(plan_of(1, 2));
  plan::Plan joined = plan_of(2, 2);
  joined.workers = 3;
  meter.on_plan(joined);
  for (uint64_t steps = 1; steps <= 20; ++steps) {
    const auto seconds = static_cast<double>(steps);
    for (uint32_t rank = 0; rank < 2; ++rank) report(meter, rank, steps, seconds * (1 + rank), absl::Seconds(steps));
  }
  EXPECT_THAT(meter.waited_for(4), IsEmpty());
  EXPECT_GT(meter.window(absl::Seconds(20)).steps, 10u);
}

TEST(EfficiencyMeter, RanksOfAsynchronousTrainingDoNotWait) {
  EfficiencyMeter meter(2);
  plan::Plan plan = plan_of(1, 2);
  plan.tensors = {{.name = "a", .elements = kBytes / 4, .accumulates = true}};
  meter.on_plan(plan);
  const double step = bound_of(2) / 0.9;
  report(meter, 0, 2, 2 * step, absl::Seconds(1));
  report(meter, 1, 1, 3 * step, absl::Seconds(1));
  EXPECT_NEAR(meter.whole().step_communication_seconds, 3 * step, 1e-9) << "that of the slowest worker";
  EXPECT_EQ(meter.whole().step_wait_seconds, 0);
}

TEST(EfficiencyMeter, StepsOfARankThatGoesOnAloneCount) {
  EfficiencyMeter meter(2);
  meter.on_plan(plan_of(1, 2));
  const double step = bound_of(2) / 0.9;
  report(meter, 1, 1, step, absl::Seconds(1));
  for (uint64_t steps = 1; steps <= 60; ++steps) {
    report(meter, 0, steps, static_cast<double>(steps) * step, absl::Seconds(2 * steps));
  }
  EXPECT_NEAR(meter.window(absl::Seconds(120)).efficiency, 0.9, 1e-6);
}

TEST(EfficiencyMeter, BytesOfAStepAreThoseOfItsPushPulls) {
  EfficiencyMeter meter(1);
  meter.on_plan(plan_of(1, 2));
  const double seconds = bound_of(2) / 0.9;
  // Requests are always in flight, so fewer bytes are known to have come in the time of these steps.
  meter.on_report(0, {4, 4 * kBytes, 4 * seconds, {{1, 4, 3 * kBytes, kBytes, 4 * seconds, 4 * kBytes}}},
                  absl::Hours(1));
  EXPECT_DOUBLE_EQ(meter.whole().bytes_per_step, kBytes);
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
