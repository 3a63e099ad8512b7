// Tests of the strategy of a job: as its session gets it, its summers, its plan object, its status and Events.
#include "operator/reconcile/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/reconcile/world.h"

namespace gleaner::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

World job_with(api::Strategy strategy, uint32_t workers = 4) {
  World world(workers);
  for (uint32_t i = 0; i < workers; ++i) world.nodes["w" + std::to_string(i)] = {true, true, 1e9};
  world.job.communication.strategy = strategy;
  return world;
}

World running_by_strategy(api::Strategy strategy) {
  World world = job_with(strategy);
  world.settle();
  world.run_workers();
  world.settle();
  return world;
}

coordinator::JobState session_with(std::vector<plan::StrategyShare> strategies, const std::string& names) {
  coordinator::JobState session;
  session.phase = coordinator::JobState::Phase::kRunning;
  session.epoch = 2;
  session.strategies = std::move(strategies);
  session.summary.strategy = names;
  return session;
}

std::string name_of_strategy(api::Strategy strategy) {
  api::TrainingJob job;
  job.communication.strategy = strategy;
  return name_of(*strategy_of(job));
}

TEST(JobStrategy, NamesAreThoseOfTheCoordinator) {
  using enum api::Strategy;
  std::vector<std::string> names;
  for (const api::Strategy strategy : {kAuto, kColocated, kSummers, kRing, kHalvingDoubling, kDoubleTree, kBCube,
                                       kBlueConnect, kTwoLevel, kRacks, kGather}) {
    names.push_back(name_of_strategy(strategy));
  }
  EXPECT_THAT(names, ElementsAre("auto", "summers", "summers", "ring", "halving-doubling", "double-tree", "bcube",
                                 "blueconnect", "two-level", "racks", "gather"));
}

TEST(JobStrategy, SessionGetsTheScheduleWithItsOptions) {
  World world = job_with(api::Strategy::kBlueConnect, 12);
  world.job.communication.stages = {3, 2, 2};
  world.settle();
  world.run_workers();
  world.settle();
  ASSERT_TRUE(world.wanted_session.has_value());
  const strategy::Strategy wanted = collective::Spec{"blueconnect", {3, 2, 2}};
  EXPECT_EQ(world.wanted_session->reduction.strategy, wanted);
  EXPECT_TRUE(coordinator::validate(*world.wanted_session).ok());
}

TEST(JobStrategy, SessionGetsTheBits) {
  World world = job_with(api::Strategy::kAuto);
  EXPECT_EQ(bits_of(world.job), std::nullopt);
  world.job.communication.bits = api::Bits::kRankOrder;
  EXPECT_EQ(bits_of(world.job), plan::Bits::kRankOrder);
  world.job.communication.bits = api::Bits::kSchedule;
  world.settle();
  world.run_workers();
  world.settle();
  ASSERT_TRUE(world.wanted_session.has_value());
  EXPECT_EQ(world.wanted_session->reduction.bits, plan::Bits::kSchedule);
}

TEST(JobStrategy, BitsThatTheStrategyLacksFailTheJob) {
  World world = job_with(api::Strategy::kRing);
  world.job.communication.bits = api::Bits::kRankOrder;
  world.settle();
  ASSERT_TRUE(world.holds("Failed"));
  EXPECT_EQ(world.condition("Failed")->reason, "InvalidStrategy");
  EXPECT_THAT(world.condition("Failed")->message, HasSubstr("or the bits Schedule"));
}

TEST(JobStrategy, BitsAreInTheStatusAndThePlanObject) {
  World world = running_by_strategy(api::Strategy::kAuto);
  world.session = session_with({{"summers", 1, 64}}, "summers");
  world.session->summary.bits.in_force = plan::Bits::kRankOrder;
  world.session->summary.bits.other = {plan::Bits::kSchedule, 0.0012, 0.0019, "ring"};
  world.look();
  EXPECT_EQ(world.job.status.communication.bits, "RankOrder");
  EXPECT_EQ(world.plan->spec.bits, "RankOrder");
  EXPECT_EQ(world.plan->spec.other_bits, (api::PlanOtherBits{"Schedule", "ring", 0.0012, 0.0019}));
  world.exit("digits-worker-0", 137);
  world.now += absl::Minutes(1);
  world.look();
  EXPECT_EQ(world.job.status.communication.bits, "") << "the next attempt has no plan yet";
}

TEST(JobStrategy, ImpossibleScheduleFailsTheJobBeforeItHasPods) {
  World world = job_with(api::Strategy::kBCube);
  world.job.communication.radix = 3;
  world.settle();
  ASSERT_TRUE(world.holds("Failed"));
  EXPECT_EQ(world.condition("Failed")->reason, "InvalidStrategy");
  EXPECT_THAT(world.condition("Failed")->message, HasSubstr("4 is no power of 3"));
  EXPECT_THAT(world.names(), IsEmpty());
}

TEST(JobStrategy, ImpossibleChangeFailsTheRunningJob) {
  World world = running_by_strategy(api::Strategy::kAuto);
  world.job.communication.stages = {2, 2};
  world.look();
  ASSERT_TRUE(world.holds("Failed"));
  EXPECT_EQ(world.condition("Failed")->reason, "InvalidStrategy");
  EXPECT_THAT(world.condition("Failed")->message, HasSubstr("auto chooses stages"));
}

TEST(JobStrategy, GetsNoSummersThatItDoesNotUse) {
  World world = job_with(api::Strategy::kRing);
  world.job.communication.summers.max = 2;
  world.spare = {{"s0", 1e9}, {"s1", 1e9}};
  world.settle();
  world.run_workers();
  world.settle();
  EXPECT_THAT(world.names(), SizeIs(4)) << "the workers alone";
  ASSERT_TRUE(world.wanted_session.has_value());
  EXPECT_EQ(world.wanted_session->summers, 0U);
  EXPECT_EQ(world.job.status.summers.reason, "StrategyUsesNone");
  EXPECT_THAT(world.job.status.summers.message, HasSubstr("the strategy Ring sums between the workers"));
}

TEST(JobStrategy, SummersAreChosenForAutoAndSummers) {
  for (const api::Strategy strategy : {api::Strategy::kAuto, api::Strategy::kSummers}) {
    World world = job_with(strategy);
    world.job.communication.summers.max = 2;
    world.spare = {{"s0", 1e9}, {"s1", 1e9}};
    world.settle();
    world.run_workers();
    world.settle();
    EXPECT_THAT(world.names(), SizeIs(6)) << api::to_string(strategy);
    EXPECT_EQ(world.job.status.summers.reason, "");
  }
}

TEST(JobStrategy, PlanObjectHasSchedulesAndRankMaps) {
  World world = running_by_strategy(api::Strategy::kAuto);
  world.session = session_with({{"summers", 3, 4096}, {"ring", 1, 64}}, "summers, ring");
  world.session->schedules = {{.algorithm = "ring", .rank_of = {1, 0, 3, 2}}};
  world.look();
  const api::ReductionPlanSpec& spec = world.plan->spec;
  EXPECT_EQ(spec.strategy, "summers, ring");
  EXPECT_THAT(spec.strategies, ElementsAre(api::PlanStrategy{"summers", 3, 4096}, api::PlanStrategy{"ring", 1, 64}));
  EXPECT_THAT(spec.schedules, ElementsAre(api::PlanSchedule{"ring", {}, 0, {1, 0, 3, 2}}));
}

TEST(JobStrategy, PlanObjectLeavesOutManyRankMaps) {
  World world = running_by_strategy(api::Strategy::kAuto);
  world.session = session_with({{"ring", 1, 64}}, "ring");
  world.session->schedules = {{.algorithm = "ring", .rank_of = std::vector<uint32_t>(32769)}};
  world.look();
  EXPECT_THAT(world.plan->spec.schedules, ElementsAre(api::PlanSchedule{"ring", {}, 0, {}}));
}

TEST(JobStrategy, StatusNamesTheStrategiesInForce) {
  World world = running_by_strategy(api::Strategy::kAuto);
  world.session = session_with({}, "summers");
  world.look();
  EXPECT_EQ(world.job.status.communication.strategy, "") << "no tensor is declared";
  EXPECT_EQ(world.plan->spec.strategy, "");
  world.session = session_with({{"ring", 1, 64}}, "ring");
  world.look();
  EXPECT_EQ(world.job.status.communication.strategy, "ring");
  EXPECT_FALSE(world.noted("StrategyChanged"));
}

TEST(JobStrategy, EachChangeIsOneEvent) {
  World world = running_by_strategy(api::Strategy::kAuto);
  world.session = session_with({{"summers", 1, 64}}, "summers");
  world.look();
  world.session = session_with({{"summers", 1, 64}, {"ring", 1, 64}}, "summers, ring");
  world.look();
  world.look();
  std::vector<std::string> messages;
  for (const EventNote& event : world.events) {
    if (event.reason == "StrategyChanged") messages.push_back(event.message);
  }
  EXPECT_THAT(messages, ElementsAre("the plan of epoch 2 sums tensors by summers, ring, before by summers"));
}

TEST(JobStrategy, EventHasTheTimesThatDecided) {
  World world = running_by_strategy(api::Strategy::kAuto);
  world.session = session_with({{"summers", 1, 64}}, "summers");
  world.look();
  world.session = session_with({{"ring", 1, 64}}, "ring");
  const std::string why = "a step takes 2.0 ms, where the models say 0.4 ms";
  world.session->summary.strategy_changes = {{.epoch = 1, .why = "an earlier change"},
                                             {.epoch = world.session->epoch, .why = why}};
  world.look();
  ASSERT_TRUE(world.noted("StrategyChanged"));
  EXPECT_EQ(world.events.back().message, "the plan of epoch 2 sums tensors by ring, before by summers: " + why);
}

TEST(JobStrategy, NextAttemptBeginsWithoutOne) {
  World world = running_by_strategy(api::Strategy::kRing);
  world.session = session_with({{"ring", 1, 64}}, "ring");
  world.look();
  ASSERT_EQ(world.job.status.communication.strategy, "ring");
  world.exit("digits-worker-0", 137);
  world.now += absl::Minutes(1);
  world.look();
  ASSERT_EQ(world.job.status.attempt, 1U);
  EXPECT_EQ(world.job.status.communication.strategy, "");
}

}  // namespace
}  // namespace gleaner::reconcile
