#include "coordinator/measure/step_times.h"

#include <gtest/gtest.h>

namespace gleaner::coordinator {
namespace {

using control::Measured;
using control::Report;

constexpr absl::Duration kEvery = absl::Milliseconds(500);  // between reports

// Two workers of two local ranks, which report under the plan of epoch 3.
class StepTimesTest : public testing::Test {
 protected:
  StepTimesTest() { times_.on_plan(3, now_); }

  // Each rank does so many steps, and reports them. The steps of worker w take seconds[w].
  void report(uint64_t steps, std::vector<double> seconds) {
    now_ += kEvery;
    for (uint32_t rank = 0; rank < 4; ++rank) {
      Measured& measured = measured_[rank];
      measured.epoch = 3;
      measured.steps += steps;
      measured.bytes += steps * 1000;
      // Local ranks above 0 wait for local rank 0.
      measured.communication_seconds += static_cast<double>(steps) * (rank % 2 == 0 ? seconds[rank / 2] : 100);
      Report report{.round_trip_seconds = 1e-4, .link_bits_per_second = link_bits_per_second_};
      report.measured = {{2, 7, 7, 0, 7.0}, measured};
      times_.on_report(rank, report, now_);
    }
  }

  StepTimes times_{4, 2};
  Measured measured_[4];
  double link_bits_per_second_ = 0;
  absl::Duration now_ = absl::Seconds(100);
};

TEST_F(StepTimesTest, TheLeastTimeOfAWorkerCounts) {
  std::optional<StepTime> step;
  for (int i = 0; i < 20 && !step.has_value(); ++i) {
    report(5, {0.25, 0.5});
    step = times_.take(now_);
  }
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->epoch, 3u);
  EXPECT_DOUBLE_EQ(step->seconds, 0.25);
  EXPECT_DOUBLE_EQ(step->bytes, 1000);
}

TEST_F(StepTimesTest, LinksHaveTheMeanOfTheirRates) {
  report(5, {0.25, 0.5});
  report(5, {0.25, 0.5});  // the window begins
  for (const double rate : {1e9, 0.0, 3e9, 0.0, 0.0, 0.0}) {
    link_bits_per_second_ = rate;
    report(5, {0.25, 0.5});
  }
  const std::optional<StepTime> step = times_.take(now_);
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->link_bits_per_second, (std::vector<double>{2e9, 2e9})) << "0 is not known";
  EXPECT_EQ(step->round_trip_seconds, (std::vector<double>{1e-4, 1e-4}));
}

TEST_F(StepTimesTest, TheBeginningOfAPlanIsLeftOut) {
  report(2, {50, 50});
  report(3, {50, 50});
  std::optional<StepTime> step;
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(times_.take(now_).has_value()) << i;
    report(5, {0.25, 0.5});
  }
  step = times_.take(now_);
  ASSERT_TRUE(step.has_value());
  EXPECT_DOUBLE_EQ(step->seconds, 0.25);
}

TEST_F(StepTimesTest, AWindowHasTenSteps) {
  for (int i = 0; i < 12; ++i) {
    report(1, {1, 1});
    EXPECT_FALSE(times_.take(now_).has_value()) << i;
  }
  report(1, {1, 1});
  EXPECT_TRUE(times_.take(now_).has_value());
  EXPECT_FALSE(times_.take(now_ + absl::Minutes(1)).has_value()) << "the next window has no step yet";
}

TEST_F(StepTimesTest, EveryWorkerTakesPart) {
  for (int i = 0; i < 20; ++i) {
    now_ += kEvery;
    measured_[0].epoch = 3;
    measured_[0].steps += 5;
    Report report;
    report.measured = {measured_[0]};
    times_.on_report(0, report, now_);
    EXPECT_FALSE(times_.take(now_).has_value());
  }
}

TEST_F(StepTimesTest, AnotherPlanBeginsAnew) {
  for (int i = 0; i < 7; ++i) report(5, {1, 1});
  times_.on_plan(4, now_);
  report(5, {1, 1});
  EXPECT_FALSE(times_.take(now_ + absl::Minutes(1)).has_value()) << "all reports are of the plan before";
}

}  // namespace
}  // namespace gleaner::coordinator
