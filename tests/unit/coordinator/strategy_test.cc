// Tests of the schedule that a job's options name: its checks, and its way into plans.
#include <gmock/gmock.h>

#include <memory>

#include "common/plan/partitioner.h"
#include "common/plan/schedule_name.h"
#include "common/strategy/choice.h"
#include "common/topology/builders.h"
#include "common/topology/subset.h"
#include "coordinator/planning/planner.h"
#include "tests/unit/coordinator/seats.h"

namespace gleaner::coordinator {
namespace {

using testing::HasSubstr;

using collective::Spec;

Options with_strategy(uint32_t workers, strategy::Strategy strategy) {
  Options options = job_of(workers, 0);
  options.reduction.strategy = std::move(strategy);
  return options;
}

// Makes the plan after `in_force`, once its models are there.
absl::StatusOr<std::optional<Planner::Proposal>> next_of(Planner& planner, const plan::Plan& in_force) {
  planner.modelling().want(in_force);
  if (const ModelRequest request = planner.modelling().take_request()) {
    planner.modelling().on_modelled(request, Modelling::carry_out(*request));
  }
  return planner.make_next(in_force, 2, false, absl::ZeroDuration());
}

std::string refusal(const Options& options) { return std::string(validate(options).message()); }

TEST(Strategy, ServesTheNumberOfWorkers) {
  EXPECT_EQ(refusal(with_strategy(7, Spec{"ring"})), "");
  EXPECT_EQ(refusal(with_strategy(12, Spec{"blueconnect", {3, 2, 2}})), "");
  EXPECT_THAT(refusal(with_strategy(12, Spec{"blueconnect", {5, 2}})), HasSubstr("strategy blueconnect: "));
  EXPECT_THAT(refusal(with_strategy(6, Spec{"bcube", {}, 4})), HasSubstr("strategy bcube: "));
  EXPECT_THAT(refusal(with_strategy(4, Spec{"triangle"})), HasSubstr("strategy triangle: "));
}

TEST(Strategy, ElasticJobsNeedEveryNumberOfWorkers) {
  Options options = with_strategy(4, Spec{"ring"});
  options.min_workers = 1;
  options.max_workers = 8;
  EXPECT_EQ(refusal(options), "");
  options.reduction.strategy = Spec{"racks"};
  EXPECT_EQ(refusal(options), "");
  options.reduction.strategy = Spec{"bcube"};
  EXPECT_THAT(refusal(options), HasSubstr("serves only some numbers of workers"));
  options.reduction.strategy = Spec{"blueconnect", {2, 2}};
  EXPECT_THAT(refusal(options), HasSubstr("serves only some numbers of workers"));
}

TEST(Strategy, TensorsHaveTheScheduleUnlessTheyAccumulate) {
  const Options options = with_strategy(2, Spec{"ring"});
  Roster roster(options);
  seat_all(roster, options);
  Planner planner(&options, &roster);
  const auto first = planner.make_first(1);
  ASSERT_TRUE(first.ok()) << first.status();
  planner.add_tensors({{"w", 100}, {"r", 100, DataType::kFloat32, 0, 0, true}});
  const auto next = next_of(planner, *first);
  ASSERT_TRUE(next.ok() && next->has_value()) << next.status();
  const plan::Plan& plan = (*next)->plan;
  EXPECT_EQ(plan.schedules, std::vector<Spec>{{"ring"}});
  EXPECT_EQ(plan.tensors[0].schedule, 0u);
  EXPECT_EQ(plan.tensors[1].schedule, std::nullopt);
  EXPECT_EQ(plan::validate(plan), absl::OkStatus());
}

TEST(Strategy, PartitionsOfAScheduleAreLarger) {
  const auto largest = [](const std::string& strategy) {
    Options options = with_strategy(8, *strategy::make_strategy(strategy));
    options.bits_per_second = 0.2e9;
    Roster roster(options);
    seat_all(roster, options);
    Planner planner(&options, &roster);
    planner.add_tensors({{"w", 16 << 20}});
    const auto next = next_of(planner, *planner.make_first(1));
    uint32_t bytes = 0;
    for (const plan::Partition& partition : (*next)->plan.partitions) bytes = std::max(bytes, partition.bytes);
    return bytes;
  };
  EXPECT_EQ(largest(plan::kSummersStrategy), 32u << 10);
  EXPECT_EQ(largest("ring"), 256u << 10);
}

TEST(Strategy, AutoGoesBySize) {
  Options options = with_strategy(2, strategy::Auto());
  EXPECT_EQ(refusal(options), "");
  options.bits_per_second = 10e9;
  Roster roster(options);
  seat_all(roster, options);
  Planner planner(&options, &roster);
  const auto first = planner.make_first(1);
  ASSERT_TRUE(first.ok() && first->schedules.empty()) << first.status();
  planner.modelling().set_round_trip(100e-6);
  planner.add_tensors({{"small", 1}, {"large", 1 << 20}});
  const auto next = next_of(planner, *first);
  ASSERT_TRUE(next.ok() && next->has_value()) << next.status();
  const plan::Plan& plan = (*next)->plan;
  EXPECT_EQ(plan.tensors[1].schedule, std::nullopt);
  ASSERT_TRUE(plan.tensors[0].schedule.has_value());
  EXPECT_EQ(plan.schedules[*plan.tensors[0].schedule].algorithm, "gather");
  EXPECT_THAT((*next)->strategies, HasSubstr("1 tensor of 4 B by gather; 1 tensor of 4.00 MiB by summers"));
}

// Returns options of eight workers in two racks, where schedules sum large tensors fastest.
Options in_racks() {
  Options options = with_strategy(8, strategy::Auto());
  options.bits_per_second = 10e9;
  options.reduction.network = std::make_shared<const strategy::JobNetwork>(
      strategy::JobNetwork{*topology::racks(2, 4, {10e9, 10e9, 5e-6}), strategy::RankMapSource::kIdentity, {}, {}});
  return options;
}

TEST(Strategy, SharesFollowTheUplinksOfTheNetwork) {
  Options options = with_strategy(4, strategy::Summers());
  options.bits_per_second = 8e9;
  // Three workers are in rack 0, whose uplink is least busy if they own everything.
  const std::vector<uint32_t> hosts = {0, 1, 2, 3};
  options.reduction.network = std::make_shared<const strategy::JobNetwork>(
      strategy::JobNetwork{.topology = *topology::subset(*topology::racks(2, 3, {8e9, 4e9, 1e-6}), hosts)});
  Roster roster(options);
  seat_all(roster, options);
  Planner planner(&options, &roster);
  planner.add_tensors({{"large", 16 << 20}});
  const auto next = next_of(planner, *planner.make_first(1));
  ASSERT_TRUE(next.ok() && next->has_value()) << next.status();
  EXPECT_EQ(plan::owned_bytes((*next)->plan)[3], 0u);
  ASSERT_TRUE(roster.set_bandwidth(Role::kWorker, 0, 7e9).ok());
  planner.on_committed(PlanReason::kNeeded);
  const auto changed = planner.make_next((*next)->plan, 3, false, absl::ZeroDuration());
  ASSERT_TRUE(changed.ok() && changed->has_value()) << changed.status();
  EXPECT_EQ(plan::owned_bytes((*changed)->plan)[3], 0u) << "all partitions are dealt anew";
}

TEST(Strategy, AutoStaysInRankOrderByDefault) {
  const Options options = in_racks();
  Roster roster(options);
  seat_all(roster, options);
  Planner planner(&options, &roster);
  const auto first = planner.make_first(1);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->bits, plan::Bits::kRankOrder);
  planner.add_tensors({{"small", 1}, {"medium", 64 << 10}, {"large", 16 << 20}});
  const auto next = next_of(planner, *first);
  ASSERT_TRUE(next.ok() && next->has_value()) << next.status();
  EXPECT_EQ(plan::validate((*next)->plan), absl::OkStatus());
  EXPECT_EQ((*next)->plan.bits, plan::Bits::kRankOrder);
}

TEST(Strategy, ACoordinatorThatTakesUpAJobKeepsItsBits) {
  const Options options = in_racks();
  Roster roster(options);
  seat_all(roster, options);
  Planner planner(&options, &roster);
  plan::Plan in_force = *planner.make_first(1);
  in_force.bits = plan::Bits::kSchedule;  // the earlier coordinator had other options
  planner.add_tensors({{"large", 16 << 20}});
  const auto next = next_of(planner, in_force);
  ASSERT_TRUE(next.ok() && next->has_value()) << next.status();
  EXPECT_EQ((*next)->plan.bits, plan::Bits::kSchedule);
  EXPECT_TRUE((*next)->plan.tensors[0].schedule.has_value());
}

TEST(Strategy, BitsFollowFromTheStrategyUnlessTheyAreGiven) {
  const auto bits = [](const char* strategy, std::optional<plan::Bits> given = std::nullopt) {
    Options options = with_strategy(4, *strategy::make_strategy(strategy));
    options.reduction.bits = given;
    return bits_of(options.reduction);
  };
  EXPECT_EQ(bits(strategy::kAuto), plan::Bits::kRankOrder);
  EXPECT_EQ(bits(plan::kSummersStrategy), plan::Bits::kRankOrder);
  EXPECT_EQ(bits(plan::kGatherAlgorithm), plan::Bits::kRankOrder);
  EXPECT_EQ(bits("ring"), plan::Bits::kSchedule);
  EXPECT_EQ(bits(strategy::kAuto, plan::Bits::kSchedule), plan::Bits::kSchedule);
  EXPECT_EQ(bits(plan::kSummersStrategy, plan::Bits::kSchedule), plan::Bits::kSchedule);
}

TEST(Strategy, AScheduleHasNoBitsOfRankOrder) {
  Options options = with_strategy(4, Spec{"ring"});
  options.reduction.bits = plan::Bits::kRankOrder;
  EXPECT_THAT(refusal(options),
              HasSubstr("ring sums in an order of its own; choose the strategy auto, summers or gather"));
  options.reduction.bits = plan::Bits::kSchedule;
  EXPECT_EQ(refusal(options), "");
  for (const plan::Bits bits : {plan::Bits::kRankOrder, plan::Bits::kSchedule}) {
    options.reduction.bits = bits;
    options.reduction.strategy = strategy::Summers();
    EXPECT_EQ(refusal(options), "");
    options.reduction.strategy = strategy::Auto();
    EXPECT_EQ(refusal(options), "");
  }
}

TEST(Strategy, SharesCountTheTensorsThatDoNotAccumulate) {
  plan::Plan plan;
  plan.schedules = {{"ring"}, {"blueconnect", {2, 2}}};
  plan.tensors = {{.name = "a", .elements = 10, .schedule = 1},
                  {.name = "b", .elements = 1},
                  {.name = "c", .elements = 20, .schedule = 1},
                  {.name = "d", .elements = 5, .accumulates = true}};
  EXPECT_THAT(plan::strategy_shares(plan), testing::ElementsAre(plan::StrategyShare{"blueconnect 2,2", 2, 120},
                                                                plan::StrategyShare{"summers", 1, 4}));
  EXPECT_EQ(plan::strategy_of(plan), "blueconnect 2,2, summers");
}

}  // namespace
}  // namespace gleaner::coordinator
