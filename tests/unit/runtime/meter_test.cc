// Tests of a rank's counters: totals since the start, and figures of each epoch that can be compared with its bound.
#include "comm-lib/runtime/meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace gleaner::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kBytes = 1000;

// Returns the figures of steps of kBytes and a second.
control::Measured measured(uint32_t epoch, uint64_t steps, uint64_t last_step) {
  return {epoch, steps, steps * kBytes, 0, static_cast<double>(steps), steps * kBytes, last_step};
}
control::Measured measured(uint32_t epoch, uint64_t steps) { return measured(epoch, steps, steps); }

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
  // A request of another tensor that takes 10 s.
  void push_pull(uint64_t bytes, Meter::Kind kind = Meter::Kind::kReduction) {
    meter.begin(bytes, now, kind);
    wait(10);
    meter.end(1, bytes, true, now, kind);
  }
  std::vector<control::Measured> figures(bool last = false) { return meter.report(now, last).measured; }

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
  EXPECT_THAT(rank.figures(), ElementsAre(measured(1, 3)));
  rank.begin();
  rank.wait(0.5);
  EXPECT_THAT(rank.figures(), ElementsAre(measured(1, 3))) << "the present step is included";
}

TEST(Meter, SavedBytesBelongToTheStepInWhichTheyAreSaved) {
  Rank rank;
  rank.follow(1);
  for (const int64_t saved : {10, 30, 30}) {
    rank.begin();
    rank.meter.save(saved);
    rank.end();
    rank.meter.step();
  }
  EXPECT_EQ(rank.figures()[0].saved_bytes, 70);
  EXPECT_EQ(rank.meter.report(rank.now).saved_bytes, 30) << "of the latest step, as step_bytes";
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
  EXPECT_THAT(rank.figures(), ElementsAre(measured(1, 1)));
  rank.step();
  rank.step();
  EXPECT_THAT(rank.figures(), ElementsAre(measured(1, 1), measured(2, 2, 4)));
}

TEST(Meter, AChangeBetweenTwoStepsLosesNothing) {
  Rank rank;
  rank.follow(1);
  rank.step();
  rank.follow(2);
  rank.step();
  EXPECT_THAT(rank.figures(), ElementsAre(measured(1, 1), measured(2, 1, 2)));
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
    for (const control::Measured& measured : rank.figures()) {
      EXPECT_LE(static_cast<double>(measured.bytes), measured.communication_seconds * kBytes);
    }
  }
  ASSERT_EQ(rank.figures().size(), 1u);
  const control::Measured measured = rank.figures()[0];
  EXPECT_GE(measured.steps, 12u);
  EXPECT_EQ(measured.open_bytes, kBytes);
  rank.follow(2);
  for (int step = 0; step < 20; ++step) {
    rank.wait(1);
    rank.begin();
    rank.end();
    rank.meter.step();
    for (const control::Measured& each : rank.figures()) {
      EXPECT_LE(static_cast<double>(each.bytes), each.communication_seconds * kBytes);
    }
  }
  ASSERT_EQ(rank.figures().size(), 2u);
  EXPECT_GE(rank.figures()[1].bytes, 8 * kBytes);
}

TEST(Meter, PushPullsThatFailBelongToNoStep) {
  Rank rank;
  rank.follow(1);
  rank.begin();
  rank.wait(1);
  rank.meter.end(0, kBytes, false, rank.now);
  rank.step();
  rank.step();
  EXPECT_THAT(rank.figures(), ElementsAre(measured(1, 2)));
  EXPECT_DOUBLE_EQ(rank.meter.report(rank.now).communication_seconds, 3);
}

TEST(Meter, WithoutCallsOfStepTheMostPushPullsOfATensorAreTheSteps) {
  Rank rank;
  rank.follow(1);
  for (int step = 0; step < 3; ++step) {
    rank.begin();
    rank.wait(1);
    rank.end();
  }
  EXPECT_THAT(rank.figures(), ElementsAre(measured(1, 3)));
}

TEST(Meter, RequestsAfterTheLastStepBelongToNoStep) {
  Rank rank;
  rank.follow(1);
  rank.step();
  rank.step();
  rank.push_pull(5 * kBytes);
  EXPECT_THAT(rank.figures(true), ElementsAre(measured(1, 2)));
  EXPECT_EQ(rank.meter.report(rank.now).bytes, 7 * kBytes);
}

TEST(Meter, AnEvaluationAmongStepsChangesNoFigureOfThem) {
  for (const uint64_t evaluation : {kBytes / 1000, 7 * kBytes}) {
    Rank rank;
    rank.follow(1);
    for (int step = 1; step <= 30; ++step) {
      rank.step();
      if (step % 10 == 0) rank.push_pull(evaluation);
    }
    EXPECT_THAT(rank.figures(true), ElementsAre(measured(1, 28, 30))) << "two of the evaluations are part of a step";
  }
}

TEST(Meter, BroadcastsBelongToNoStep) {
  Rank rank;
  rank.push_pull(20 * kBytes, Meter::Kind::kBroadcast);
  rank.push_pull(20 * kBytes, Meter::Kind::kBroadcast);
  rank.follow(1);
  rank.push_pull(20 * kBytes, Meter::Kind::kBroadcast);
  for (int step = 0; step < 10; ++step) {
    rank.step();
    if (step == 5) rank.push_pull(3 * kBytes, Meter::Kind::kBroadcast);
  }
  EXPECT_THAT(rank.figures(), ElementsAre(measured(1, 10)));
  EXPECT_EQ(rank.meter.report(rank.now).steps, 10u);
  EXPECT_EQ(rank.meter.report(rank.now).step_bytes, kBytes);
}

// A numpy program that sums two tensors and then broadcasts whether to stop, without step().
TEST(Meter, StepsWithABroadcastCountWithoutIt) {
  Rank rank;
  rank.follow(1);
  for (int step = 0; step < 40; ++step) {
    rank.begin();
    rank.wait(1);
    rank.end();
    rank.push_pull(kBytes);
    rank.push_pull(8, Meter::Kind::kBroadcast);
  }
  const control::Measured figures = rank.figures(true).at(0);
  EXPECT_GE(figures.steps, 38u);
  EXPECT_EQ(figures.step_bytes, figures.steps * 2 * kBytes);
  EXPECT_DOUBLE_EQ(figures.communication_seconds, 11.0 * static_cast<double>(figures.steps));
  EXPECT_DOUBLE_EQ(rank.meter.report(rank.now).communication_seconds, 40 * 21);
}

TEST(Meter, StepsBesideABroadcastDoNotCount) {
  Rank rank;
  rank.follow(1);
  rank.step();
  rank.meter.begin(8, rank.now, Meter::Kind::kBroadcast);
  rank.step();
  rank.step();
  rank.meter.end(1, 8, true, rank.now, Meter::Kind::kBroadcast);
  rank.step();
  EXPECT_THAT(rank.figures(true), ElementsAre(measured(1, 2, 4)));
}

// Reductions are always in flight, so marks come while the broadcast is in flight.
TEST(Meter, ABroadcastInFlightAtAMarkDisturbsTheNextStepsToo) {
  Rank rank;
  rank.follow(1);
  rank.begin();
  rank.meter.begin(8, rank.now, Meter::Kind::kBroadcast);
  for (int step = 0; step < 20; ++step) {
    rank.wait(1);
    rank.begin();
    rank.end();
    rank.meter.step();
  }
  EXPECT_THAT(rank.figures(true), IsEmpty());
}

TEST(Meter, PushPullsThatFailAfterAMarkSpoilNoBytes) {
  Rank rank;
  rank.follow(1);
  rank.begin();
  rank.meter.begin(100 * kBytes, rank.now);
  for (int step = 0; step < 9; ++step) {
    rank.wait(1);
    rank.begin();
    rank.end();
    rank.meter.step();
    if (step == 5) rank.meter.end(1, 100 * kBytes, false, rank.now);
    EXPECT_LE(rank.meter.report(rank.now).step_bytes, 30 * kBytes) << step;
  }
}

TEST(Meter, RequestsBeforeTheFirstStepDoNotCountAsSteps) {
  Rank rank;
  rank.follow(1);
  for (int each = 0; each < 5; ++each) rank.push_pull(2 * kBytes);
  for (int step = 0; step < 10; ++step) rank.step();
  EXPECT_THAT(rank.figures(), ElementsAre(measured(1, 9, 10))) << "the first step may be larger";
  EXPECT_EQ(rank.meter.report(rank.now).step_bytes, kBytes);
}

TEST(Meter, StepsOfDifferentSizesCountAll) {
  Rank rank;
  rank.follow(1);
  constexpr uint64_t kSteps = 24;
  uint64_t bytes = 0;
  for (uint64_t step = 1; step <= kSteps; ++step) {
    rank.push_pull(step * kBytes);
    rank.meter.step();
    bytes += step * kBytes;
  }
  ASSERT_EQ(rank.figures().size(), 1u);
  EXPECT_EQ(rank.figures(true)[0].steps, kSteps);
  EXPECT_EQ(rank.figures()[0].step_bytes, bytes);
}

// Returns the figures of steps of these sizes, repeated 20 times.
control::Measured repeated(const std::vector<uint64_t>& sizes) {
  MeasuredSteps measured;
  measured.follow(1);
  for (int time = 0; time < 20; ++time) {
    for (const uint64_t bytes : sizes) {
      measured.add({.steps = 1, .begun_bytes = bytes, .bytes = bytes, .busy = absl::Seconds(1)});
    }
  }
  measured.count_rest();
  return measured.figures().at(0);
}

TEST(MeasuredSteps, LargeStepsAmongSmallOnesCount) {
  const std::vector<uint64_t> rare = {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 4000};
  for (const std::vector<uint64_t>& sizes :
       {std::vector<uint64_t>{8, 8, 8, 4000}, {100, 100, 900}, {0, 0, 0, 900}, {8, 4000}, rare}) {
    const control::Measured figures = repeated(sizes);
    EXPECT_EQ(figures.steps, 20 * sizes.size());
    EXPECT_EQ(figures.step_bytes, 20 * std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}));
    EXPECT_EQ(figures.bytes, figures.step_bytes);
    EXPECT_EQ(figures.communication_seconds, static_cast<double>(figures.steps));
  }
}

TEST(MeasuredSteps, SmallSumsAmongStepsDoNotCount) {
  for (const std::vector<uint64_t>& sizes : {std::vector<uint64_t>{1000, 1000, 1000, 8}, {1000, 1000, 1000, 1008}}) {
    const control::Measured figures = repeated(sizes);
    EXPECT_EQ(figures.steps, 60u);
    EXPECT_EQ(figures.step_bytes, 60'000u);
  }
}

TEST(MeasuredSteps, BytesOfStepsThatDifferAreTheirMean) {
  MeasuredSteps measured;
  measured.follow(1);
  for (int step = 0; step < 400; ++step) {
    const uint64_t bytes = step % 4 == 3 ? 4000 : 8;
    measured.add({.steps = 1, .begun_bytes = bytes, .bytes = bytes, .busy = absl::Seconds(1)});
  }
  EXPECT_EQ(measured.step_bytes().bytes, (3 * 8 + 4000) / 4);
}

TEST(Meter, ASingleStepHasItsBytes) {
  Rank rank;
  rank.push_pull(20 * kBytes, Meter::Kind::kBroadcast);
  rank.begin();
  rank.follow(1);
  rank.wait(1);
  rank.end();
  rank.meter.step();
  EXPECT_EQ(rank.meter.report(rank.now, true).step_bytes, kBytes);
  EXPECT_THAT(rank.figures(), IsEmpty()) << "the step began before the plan";
}

TEST(Meter, ReportsTheLatestEpochs) {
  Rank rank;
  rank.step();
  EXPECT_THAT(rank.figures(), IsEmpty()) << "no plan was in force during the step";
  for (uint32_t epoch = 1; epoch <= 2 * MeasuredSteps::kEpochsKept; ++epoch) {
    rank.follow(epoch);
    rank.step();
  }
  ASSERT_EQ(rank.figures().size(), MeasuredSteps::kEpochsKept);
  EXPECT_EQ(rank.figures().front().epoch, MeasuredSteps::kEpochsKept + 1);
}

}  // namespace
}  // namespace gleaner::runtime
