// Tests of --strategy auto while a job runs: measured steps lead to a plan with other strategies.
#include "coordinator/planning/auto_strategies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/strategy/choice.h"
#include "tests/unit/coordinator/fleet.h"

namespace gleaner::coordinator {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Options auto_options(plan::Bits bits = plan::Bits::kSchedule) {
  Options result = options(8, 0);
  result.reduction.strategy = strategy::Auto();
  result.reduction.bits = bits;
  result.bits_per_second = 10e9;
  result.return_timeout = absl::Seconds(5);
  return result;
}

// Eight workers whose tensor of 64 KiB is summed by summers at first. With them, steps take several times as long as
// the model says.
class AutoStrategiesTest : public testing::Test {
 protected:
  explicit AutoStrategiesTest(plan::Bits bits = plan::Bits::kSchedule) : fleet(auto_options(bits)) {
    fleet.start();
    report({});
    for (uint32_t seat = 0; seat < 8; ++seat) fleet.declare(seat, {{"w", 16 << 10, DataType::kFloat32, 0}});
    fleet.settle();
    EXPECT_EQ(fleet.core->plan().epoch, 2u);
    first_ = tensor().schedule;
    EXPECT_FALSE(first_.has_value());
  }

  // Lets half a second pass, in which each worker does ten steps.
  void pass_steps() {
    steps_ += 10;
    const uint32_t epoch = fleet.epoch(0);
    if (measured_.epoch != epoch) measured_ = {epoch};
    measured_.steps += 10;
    measured_.bytes += 10 * (64 << 10);
    measured_.communication_seconds += 10 * (tensor().schedule == first_ ? 2e-3 : 0.3e-3);
    report({measured_});
    fleet.pass(absl::Milliseconds(500));
    answer_counts();
  }
  // Each worker reports these steps. Its processor is fast, so that small partitions suit all strategies.
  void report(std::vector<control::Measured> measured) {
    const control::Report report{.steps = steps_,
                                 .measured = std::move(measured),
                                 .round_trip_seconds = strategy::kAssumedRoundTripSeconds,
                                 .overhead_seconds = 0.1e-6};
    for (const Fleet::Member& member : fleet.members) {
      if (member.stream != 0) fleet.core->on_report(member.stream, report, fleet.now, fleet.actions);
    }
  }
  void run(absl::Duration time) {
    for (const absl::Duration end = fleet.now + time; fleet.now < end;) {
      pass_steps();
      fleet.settle();
    }
  }
  // Lets time pass until a plan is proposed. Its messages wait in inboxes.
  void run_until_proposed() {
    for (int i = 0; i < 50 && !fleet.core->planning().is_proposed(); ++i) pass_steps();
    ASSERT_TRUE(fleet.core->planning().is_proposed());
  }
  void deliver_prepare(uint32_t seat) {
    while (fleet.members[seat].prepared == nullptr) ASSERT_TRUE(fleet.deliver_to(seat));
  }
  // Worker 0 answers each CountPushPulls.
  void answer_counts() {
    auto& inbox = fleet.members[0].inbox;
    for (const Message& message : std::exchange(inbox, {})) {
      if (!std::holds_alternative<CountPushPulls>(message)) {
        inbox.push_back(message);
        continue;
      }
      ++asked_;
      fleet.core->on_push_pulls(fleet.members[0].stream, fleet.epoch(0), {steps_}, fleet.now, fleet.actions);
    }
    fleet.collect();
  }
  const plan::Tensor& tensor() const { return fleet.core->plan().tensors[0]; }
  uint32_t withdrawn(uint32_t seat) const {
    uint32_t epoch = 0;
    for (const Message& message : fleet.members[seat].inbox) {
      if (const auto* withdraw = std::get_if<Withdraw>(&message)) epoch = withdraw->epoch;
    }
    return epoch;
  }

  Fleet fleet;
  std::optional<uint32_t> first_;  // the schedule of the first plan that has the tensor
  uint64_t steps_ = 0;
  int asked_ = 0;
  control::Measured measured_;
};

TEST(FirstModels, WaitUntilAllWorkersHaveMeasured) {
  Fleet fleet(auto_options());
  fleet.start();
  const control::Report report{.round_trip_seconds = 38e-6, .overhead_seconds = 4.2e-6};
  for (const Fleet::Member& member : fleet.members) {
    EXPECT_TRUE(fleet.core->planning().awaits_measurements());
    fleet.core->on_report(member.stream, report, fleet.now, fleet.actions);
  }
  EXPECT_FALSE(fleet.core->planning().awaits_measurements());
  EXPECT_THAT(fleet.actions.notes, Contains(HasSubstr("a message takes 4.2 us")));
  ASSERT_NE(fleet.actions.model, nullptr);
  EXPECT_EQ(fleet.actions.model->round_trip_seconds, 38e-6);
  EXPECT_EQ(fleet.actions.model->overhead_seconds, 4.2e-6);
}

TEST(FirstModels, DoNotWaitForLong) {
  Fleet fleet(auto_options());
  fleet.start();
  fleet.pass(Planning::kMeasuring / 2);
  EXPECT_TRUE(fleet.core->planning().awaits_measurements());
  fleet.pass(Planning::kMeasuring);
  EXPECT_FALSE(fleet.core->planning().awaits_measurements());
}

TEST_F(AutoStrategiesTest, MeasuredStepsChangeTheStrategy) {
  const std::string before = plan::strategy_of(fleet.core->plan());
  run(absl::Seconds(20));
  EXPECT_EQ(fleet.core->plan().epoch, 3u);
  EXPECT_GE(asked_, 2);
  EXPECT_GT(tensor().schedule_from, 0u);
  EXPECT_LT(tensor().schedule_from, steps_);
  const Summary summary = fleet.core->summary();
  ASSERT_THAT(summary.strategy_changes, SizeIs(1));
  const StrategyChange& change = summary.strategy_changes[0];
  EXPECT_EQ(change.epoch, 3u);
  EXPECT_EQ(change.from, before);
  EXPECT_EQ(change.to, plan::strategy_of(fleet.core->plan()));
  EXPECT_NE(change.to, before);
  EXPECT_LT(change.seconds_after, 0.8 * change.seconds_before);
  EXPECT_EQ(change.tensors, 1u);
  EXPECT_GT(change.seconds, 5);
  EXPECT_LT(change.seconds, 20);
  EXPECT_THAT(fleet.notes, Contains(describe(change)));
  EXPECT_THAT(describe(change), HasSubstr("epoch 3 changes the strategy of 1 tensor of 64.00 KiB from "));
  EXPECT_EQ(fleet.core->planning().changes().strategies, 1u);
}

class AutoInRankOrderTest : public AutoStrategiesTest {
 protected:
  AutoInRankOrderTest() : AutoStrategiesTest(plan::Bits::kRankOrder) {}
};

TEST_F(AutoInRankOrderTest, NoMeasurementChangesABit) {
  run(absl::Seconds(20));
  const plan::Plan& plan = fleet.core->plan();
  EXPECT_EQ(plan.bits, plan::Bits::kRankOrder);
  EXPECT_EQ(plan::validate(plan), absl::OkStatus()) << "no tensor has a schedule of the other class";
  const Summary summary = fleet.core->summary();
  EXPECT_EQ(summary.bits.in_force, plan::Bits::kRankOrder);
  ASSERT_THAT(summary.candidates, SizeIs(1));
  std::vector<std::string> candidates;
  for (const CandidateTimes::Candidate& each : summary.candidates[0].candidates) {
    EXPECT_EQ(each.bits, each.strategy == plan::kSummersStrategy ? plan::Bits::kRankOrder
                                                                 : plan::bits_of(collective::Spec{each.strategy}));
    if (each.bits == plan::Bits::kSchedule) candidates.push_back(each.strategy);
  }
  EXPECT_THAT(candidates, Contains("ring")) << "the summary tells about the other class";
  ASSERT_TRUE(summary.bits.other.has_value());
  EXPECT_EQ(summary.bits.other->bits, plan::Bits::kSchedule);
}

TEST_F(AutoStrategiesTest, TheSummaryExplainsTheCandidates) {
  run(absl::Seconds(6));
  const Summary summary = fleet.core->summary();
  ASSERT_THAT(summary.candidates, SizeIs(1));
  const CandidateTimes& size = summary.candidates[0];
  EXPECT_EQ(size.bytes, 64u << 10);
  EXPECT_EQ(size.strategy, plan::strategy_of(fleet.core->plan()));
  EXPECT_GT(size.candidates.size(), 5u);
  for (const CandidateTimes::Candidate& each : size.candidates) {
    EXPECT_NEAR(each.corrected_seconds, each.factor * each.seconds, 1e-12);
    EXPECT_EQ(each.is_measured, each.strategy == size.strategy);
    EXPECT_GT(each.factor, 1);
  }
}

TEST_F(AutoStrategiesTest, ARefusedPlanIsWithdrawnAndTriedAgain) {
  run(absl::Seconds(5));
  run_until_proposed();
  fleet.core->on_refused(fleet.members[5].stream, 3, absl::FailedPreconditionError("begun already"), fleet.now,
                         fleet.actions);
  fleet.collect();
  EXPECT_EQ(withdrawn(0), 3u);
  EXPECT_EQ(withdrawn(7), 3u);
  EXPECT_FALSE(fleet.core->planning().is_proposed());
  fleet.settle();
  EXPECT_EQ(fleet.core->plan().epoch, 2u);
  run(absl::Seconds(3));
  EXPECT_EQ(fleet.core->plan().epoch, 2u) << "the back-off is 5 s";
  run(absl::Seconds(10));
  EXPECT_EQ(fleet.core->plan().epoch, 4u);
  EXPECT_EQ(fleet.core->summary().strategy_changes.size(), 1u);
}

TEST_F(AutoStrategiesTest, AMemberThatMissedTheWithdrawalGetsItWhenItReturns) {
  run(absl::Seconds(5));
  run_until_proposed();
  deliver_prepare(7);
  fleet.cut(7);
  fleet.core->on_refused(fleet.members[5].stream, 3, absl::FailedPreconditionError("begun already"), fleet.now,
                         fleet.actions);
  fleet.collect();
  fleet.connect(7);
  EXPECT_EQ(withdrawn(7), 3u);
}

TEST_F(AutoStrategiesTest, TheNextCoordinatorWithdrawsWhatNobodyCommitted) {
  run(absl::Seconds(5));
  run_until_proposed();
  for (uint32_t seat = 0; seat < 3; ++seat) deliver_prepare(seat);
  fleet.restart();
  fleet.connect_all();
  for (bool any = true; any;) {
    any = false;
    for (uint32_t seat = 0; seat < 8; ++seat) any |= fleet.deliver_from(seat);
    for (uint32_t seat = 0; seat < 8; ++seat) {
      if (withdrawn(seat) == 0) any |= fleet.deliver_to(seat);
    }
  }
  for (uint32_t seat = 0; seat < 8; ++seat) EXPECT_EQ(withdrawn(seat), seat < 3 ? 3u : 0u) << seat;
  fleet.settle();
  EXPECT_EQ(fleet.core->plan().epoch, 2u);
  run(absl::Seconds(20));
  EXPECT_EQ(fleet.core->plan().epoch, 4u) << "it measures anew, and changes the strategy itself";
}

TEST_F(AutoStrategiesTest, NewTensorsAreChosenByCorrectedModels) {
  run(absl::Seconds(20));
  ASSERT_TRUE(tensor().schedule.has_value());
  for (uint32_t seat = 0; seat < 8; ++seat) fleet.declare(seat, {{"v", 16 << 10, DataType::kFloat32, 0}});
  fleet.settle();
  ASSERT_THAT(fleet.core->plan().tensors, SizeIs(2));
  EXPECT_TRUE(fleet.core->plan().tensors[1].schedule.has_value()) << "summers were measured to be slow";
  EXPECT_EQ(fleet.core->plan().tensors[1].schedule_from, 0u);
}

TEST_F(AutoStrategiesTest, AnotherStrategyIsNeverCorrected) {
  Options fixed = auto_options();
  fixed.reduction.strategy = collective::Spec{"ring"};
  Fleet ring(fixed);
  ring.start();
  ring.declare_all("w");
  ring.settle();
  EXPECT_EQ(ring.core->plan().tensors[0].schedule, 0u);
  EXPECT_THAT(ring.core->summary().candidates, IsEmpty());
  EXPECT_EQ(ring.core->summary().bits.other, std::nullopt);
}

}  // namespace
}  // namespace gleaner::coordinator
