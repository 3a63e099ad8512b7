// Tests which strategy sums each push_pull while plans change strategies, and when push_pulls are held.
#include "comm-lib/exchange/strategies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/plan/plan.h"

namespace gleaner::exchange {
namespace {

using Schedule = Strategies::Schedule;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Schedule kOwners = std::nullopt, kRing = 0, kTree = 1;
constexpr std::optional<Schedule> kHeld = std::nullopt;
std::optional<Schedule> by(Schedule schedule) { return std::optional<Schedule>(std::in_place, schedule); }

// Returns a plan with tensor 0 "w" of three partitions, whose strategy is `schedule` from push_pull `from` on, and with
// tensor 1 "v" of one partition, which owners sum.
plan::Plan make_plan(uint32_t epoch, Schedule schedule, uint64_t from) {
  plan::Plan plan;
  plan.epoch = epoch;
  plan.workers = 2;
  plan.members = {{1e9, "a:1", 1}, {1e9, "b:1", 1}};
  plan.schedules = {{"ring"}, {"double-tree"}};
  plan.tensors = {{"w", 3, DataType::kFloat32, 0, 1}, {"v", 1, DataType::kFloat32, 0, 1}};
  plan.tensors[0].schedule = schedule;
  plan.tensors[0].schedule_from = from;
  plan.partitions = {{0, 0, 0, 4, 1}, {0, 0, 4, 4, 1}, {0, 0, 8, 4, 1}, {1, 0, 0, 4, 1}};
  plan.first_partition = {0, 3, 4};
  return plan;
}

class StrategiesTest : public testing::Test {
 protected:
  StrategiesTest() { strategies_.apply(make_plan(1, kOwners, 0)); }

  std::optional<Schedule> next() const { return strategies_.find(0, 0); }
  // Begins `count` push_pulls of the whole tensor "w", each by `schedule`.
  void begin(int count, Schedule schedule) {
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(next(), by(schedule));
      strategies_.on_begun(0, 0, UINT32_MAX);
    }
  }

  Strategies strategies_;
};

TEST_F(StrategiesTest, HoldsFromTheChangeOnUntilThePlanIsInForce) {
  begin(2, kOwners);
  ASSERT_EQ(strategies_.prepare(make_plan(2, kRing, 4)), absl::OkStatus());
  begin(2, kOwners);
  EXPECT_EQ(next(), kHeld);
  strategies_.apply(make_plan(2, kRing, 4));
  begin(3, kRing);
}

TEST_F(StrategiesTest, EarlierPushPullsGoByTheOldStrategyAlsoUnderTheNewPlan) {
  begin(1, kOwners);
  ASSERT_EQ(strategies_.prepare(make_plan(2, kRing, 4)), absl::OkStatus());
  strategies_.apply(make_plan(2, kRing, 4));
  begin(3, kOwners);
  begin(2, kRing);
}

TEST_F(StrategiesTest, WithdrawalReleasesToTheOldStrategy) {
  begin(4, kOwners);
  ASSERT_EQ(strategies_.prepare(make_plan(2, kRing, 4)), absl::OkStatus()) << "push_pull 4 has not begun";
  strategies_.withdraw(3);
  EXPECT_EQ(next(), kHeld) << "another plan is withdrawn";
  strategies_.withdraw(2);
  begin(2, kOwners);
}

TEST_F(StrategiesTest, AnotherPlanReplacesThePreparedOne) {
  begin(4, kOwners);
  ASSERT_EQ(strategies_.prepare(make_plan(2, kRing, 4)), absl::OkStatus());
  EXPECT_EQ(next(), kHeld);
  ASSERT_EQ(strategies_.prepare(make_plan(3, kRing, 6)), absl::OkStatus());
  begin(2, kOwners);
  EXPECT_EQ(next(), kHeld);
  ASSERT_EQ(strategies_.prepare(make_plan(4, kOwners, 0)), absl::OkStatus()) << "a plan that changes no strategy";
  begin(1, kOwners);
}

TEST_F(StrategiesTest, RefusesAChangeOfPushPullsThatHaveBegun) {
  begin(5, kOwners);
  const absl::Status status = strategies_.prepare(make_plan(2, kRing, 4));
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("epoch 2"), HasSubstr("tensor 'w' from its 5th push_pull"),
                                                   HasSubstr("has begun 5 push_pulls")));
  begin(1, kOwners);
}

TEST_F(StrategiesTest, RefusedPlanReleasesThePushPullsOfThePlanBefore) {
  begin(4, kOwners);
  ASSERT_EQ(strategies_.prepare(make_plan(2, kRing, 4)), absl::OkStatus());
  EXPECT_FALSE(strategies_.prepare(make_plan(3, kRing, 3)).ok());
  begin(1, kOwners);
}

TEST_F(StrategiesTest, ChangesMayFollowEachOtherBeforeTheyBegin) {
  strategies_.apply(make_plan(2, kRing, 2));
  strategies_.apply(make_plan(3, kTree, 4));
  ASSERT_EQ(strategies_.prepare(make_plan(4, kOwners, 5)), absl::OkStatus());
  begin(2, kOwners);
  begin(2, kRing);
  strategies_.apply(make_plan(4, kOwners, 5));
  begin(1, kTree);
  begin(1, kOwners);
  strategies_.apply(make_plan(5, kRing, 100));
  begin(94, kOwners);
  begin(1, kRing);
}

// With several local ranks the pieces of a request begin one after the other.
TEST_F(StrategiesTest, PartitionsOfOnePushPullGoByOneStrategy) {
  strategies_.on_begun(0, 0, 2);
  ASSERT_EQ(strategies_.prepare(make_plan(2, kRing, 1)), absl::OkStatus());
  EXPECT_EQ(strategies_.find(0, 1), kHeld);
  EXPECT_EQ(strategies_.find(0, 2), by(kOwners)) << "the last piece of push_pull 0";
  strategies_.apply(make_plan(2, kRing, 1));
  strategies_.apply(make_plan(3, kTree, 2));
  EXPECT_EQ(strategies_.find(0, 1), by(kRing));
  EXPECT_EQ(strategies_.find(0, 2), by(kOwners));
  strategies_.on_begun(0, 2, 1);
  EXPECT_EQ(strategies_.find(0, 2), by(kRing));
}

TEST_F(StrategiesTest, OtherTensorsGoOn) {
  ASSERT_EQ(strategies_.prepare(make_plan(2, kRing, 1)), absl::OkStatus());
  begin(1, kOwners);
  EXPECT_EQ(next(), kHeld);
  EXPECT_EQ(strategies_.find(1, 0), by(kOwners));
}

TEST_F(StrategiesTest, NewTensorsBeginByTheirStrategy) {
  plan::Plan plan = make_plan(2, kOwners, 0);
  plan.tensors.push_back({"u", 1, DataType::kFloat32, 0, 2});
  plan.tensors.back().schedule = kTree;
  plan.partitions.push_back({2, 0, 0, 4, 2});
  plan.first_partition.push_back(5);
  ASSERT_EQ(strategies_.prepare(plan), absl::OkStatus());
  strategies_.apply(plan);
  EXPECT_EQ(strategies_.find(2, 0), by(kTree));
}

}  // namespace
}  // namespace gleaner::exchange
