// Tests of the meter of efficiency with several ranks: their reports are compared, and the wait for a late rank is no
// communication.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "coordinator/measure/efficiency_meter.h"
#include "tests/unit/coordinator/measured_plans.h"

namespace gleaner::coordinator {
namespace {

using ::testing::IsEmpty;

void expect_waits_only_for(const EfficiencyMeter& meter, uint32_t rank, double seconds) {
  const std::vector<WaitedFor> waited = meter.waited_for(4);
  ASSERT_EQ(waited.size(), 1u);
  EXPECT_EQ(waited[0].rank, rank);
  EXPECT_NEAR(waited[0].seconds, seconds, 1e-9);
}

// Reports steps of one rank, which took these seconds in all.
void report(EfficiencyMeter& meter, uint32_t rank, uint64_t steps, double seconds, absl::Duration now,
            uint64_t step_bytes = kBytes) {
  const uint64_t bytes = steps * step_bytes;
  meter.on_report(rank, {steps, bytes, seconds, {{1, steps, bytes, 0, seconds, bytes}}}, now);
}

TEST(EfficiencyWaits, TheWaitForALateRankIsNoCommunication) {
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

TEST(EfficiencyWaits, WaitsForSeveralLateRanksAreTold) {
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

TEST(EfficiencyWaits, JitterIsNoWait) {
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

TEST(EfficiencyWaits, ARankThatIsAlwaysLateIsFoundInReportsAtOtherSteps) {
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
TEST(EfficiencyWaits, ALateReportIsComparedWithReportsOfTheSameSteps) {
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

TEST(EfficiencyWaits, TheWindowEndsWithTheLastSettledStep) {
  EfficiencyMeter meter(2);
  meter.on_plan(plan_of(1, 2));
  const double step = bound_of(2) / 0.9;
  report(meter, 0, 1, step, absl::Seconds(1));
  report(meter, 1, 1, step, absl::Seconds(1));
  report(meter, 0, 2, 2 * step + 13, absl::Seconds(2));  // rank 1, which is late, has not reported yet
  EXPECT_EQ(meter.window(absl::Seconds(2)).steps, 1u);
  EXPECT_NEAR(meter.window(absl::Seconds(2)).step_communication_seconds, step, 1e-9);
}

TEST(EfficiencyWaits, RanksThatCountStepsFromOtherStartsAreNotCompared) {
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

TEST(EfficiencyWaits, RanksOfAsynchronousTrainingDoNotWait) {
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

TEST(EfficiencyWaits, StepsOfARankThatGoesOnAloneCount) {
  EfficiencyMeter meter(2);
  meter.on_plan(plan_of(1, 2));
  const double step = bound_of(2) / 0.9;
  report(meter, 1, 1, step, absl::Seconds(1));
  for (uint64_t steps = 1; steps <= 60; ++steps) {
    report(meter, 0, steps, static_cast<double>(steps) * step, absl::Seconds(2 * steps));
  }
  EXPECT_NEAR(meter.window(absl::Seconds(120)).efficiency, 0.9, 1e-6);
}

}  // namespace
}  // namespace gleaner::coordinator
