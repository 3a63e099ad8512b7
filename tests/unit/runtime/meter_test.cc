// Tests of a rank's counters: totals since the start, and figures of each epoch that can be compared with its bound.
#include "comm-lib/runtime/meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kBytes = 1000;

// A rank that, in each step, reduces one tensor of kBytes for a second and computes for a second.
class Rank {
 public:
  void follow(uint32_t epoch) { meter.follow(epoch, now); }
  void begin() { meter.begin(kBytes, now); }
  void wait(double seconds) { now += absl::Seconds(seconds); }
  void end() { meter.end(0, kBytes, true, now); }
  void step() {
    begin();
    wait(1);
    end();
    meter.step();
    wait(1);
  }
  std::vector<control::Measured> measured(bool last = false) { return meter.report(now, last).measured; }

  Meter meter;
  absl::Duration now = absl::Hours(1);
};

TEST(Meter, CountsSinceTheStart) {
  Rank rank;
  rank.step();
  rank.follow(1);
  rank.step();
  rank.begin();
  rank.wait(0.5);
  const control::Report report = rank.meter.report(rank.now);
  EXPECT_EQ(report.steps, 2u);
  EXPECT_EQ(report.bytes, 2 * kBytes);
  EXPECT_DOUBLE_EQ(report.communication_seconds, 2.5) << "requests in flight count up to the present";
}

TEST(Meter, MeasuresWholeStepsOfAnEpoch) {
  Rank rank;
  rank.follow(1);
  for (int step = 0; step < 3; ++step) rank.step();
  EXPECT_THAT(rank.measured(), ElementsAre(control::Measured{1, 3, 3 * kBytes, 0, 3.0}));
  rank.begin();
  rank.wait(0.5);
  EXPECT_THAT(rank.measured(), ElementsAre(control::Measured{1, 3, 3 * kBytes, 0, 3.0}))
      << "the present step is included";
}

TEST(Meter, AStepThatSpansAChangeOfPlanCountsForNeitherEpoch) {
  Rank rank;
  rank.follow(1);
  rank.step();
  rank.begin();
  rank.wait(0.9);
  rank.follow(2);
  rank.wait(5);
  rank.end();
  rank.meter.step();
  EXPECT_THAT(rank.measured(), ElementsAre(control::Measured{1, 1, kBytes, 0, 1.0}));
  rank.step();
  rank.step();
  EXPECT_THAT(rank.measured(),
              ElementsAre(control::Measured{1, 1, kBytes, 0, 1.0}, control::Measured{2, 2, 2 * kBytes, 0, 2.0}));
}

TEST(Meter, AChangeBetweenTwoStepsLosesNothing) {
  Rank rank;
  rank.follow(1);
  rank.step();
  rank.follow(2);
  rank.step();
  EXPECT_THAT(rank.measured(),
              ElementsAre(control::Measured{1, 1, kBytes, 0, 1.0}, control::Measured{2, 1, kBytes, 0, 1.0}));
}

// The push_pull of the next step always begins before the one before has ended, as with CrossBarrier.
TEST(Meter, RequestsInFlightAreNotCountedTooEarly) {
  Rank rank;
  rank.follow(1);
  rank.begin();
  for (int step = 0; step < 20; ++step) {
    rank.wait(1);
    rank.begin();
    rank.end();
    rank.meter.step();
    for (const control::Measured& measured : rank.measured()) {
      EXPECT_LE(static_cast<double>(measured.bytes), measured.communication_seconds * kBytes);
    }
  }
  ASSERT_EQ(rank.measured().size(), 1u);
  const control::Measured measured = rank.measured()[0];
  EXPECT_GE(measured.steps, 12u);
  EXPECT_EQ(measured.open_bytes, kBytes);
  rank.follow(2);
  for (int step = 0; step < 20; ++step) {
    rank.wait(1);
    rank.begin();
    rank.end();
    rank.meter.step();
    for (const control::Measured& each : rank.measured()) {
      EXPECT_LE(static_cast<double>(each.bytes), each.communication_seconds * kBytes);
    }
  }
  ASSERT_EQ(rank.measured().size(), 2u);
  EXPECT_GE(rank.measured()[1].bytes, 8 * kBytes);
}

TEST(Meter, PushPullsThatFailCountAsTimeOnly) {
  Rank rank;
  rank.follow(1);
  rank.begin();
  rank.wait(1);
  rank.meter.end(0, kBytes, false, rank.now);
  rank.step();
  EXPECT_THAT(rank.measured(), ElementsAre(control::Measured{1, 1, kBytes, 0, 2.0}));
}

TEST(Meter, WithoutCallsOfStepTheMostPushPullsOfATensorAreTheSteps) {
  Rank rank;
  rank.follow(1);
  for (int step = 0; step < 3; ++step) {
    rank.begin();
    rank.wait(1);
    rank.end();
  }
  EXPECT_THAT(rank.measured(), ElementsAre(control::Measured{1, 3, 3 * kBytes, 0, 3.0}));
}

TEST(Meter, TheLastReportIncludesRequestsAfterTheLastStep) {
  Rank rank;
  rank.follow(1);
  rank.step();
  rank.begin();
  rank.wait(1);
  rank.end();
  EXPECT_THAT(rank.measured(), ElementsAre(control::Measured{1, 1, kBytes, 0, 1.0}));
  EXPECT_THAT(rank.measured(true), ElementsAre(control::Measured{1, 1, 2 * kBytes, 0, 2.0}));
}

TEST(Meter, ReportsTheLatestEpochs) {
  Rank rank;
  rank.step();
  EXPECT_THAT(rank.measured(), IsEmpty()) << "no plan was in force during the step";
  for (uint32_t epoch = 1; epoch <= 2 * Meter::kEpochsKept; ++epoch) {
    rank.follow(epoch);
    rank.step();
  }
  ASSERT_EQ(rank.measured().size(), Meter::kEpochsKept);
  EXPECT_EQ(rank.measured().front().epoch, Meter::kEpochsKept + 1);
}

}  // namespace
}  // namespace gleaner::runtime
