// Tests of two-level's masters in a running job: workers report the rates of their links, and plans follow.
#include "coordinator/planning/master_tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "common/collective/groups.h"
#include "common/plan/partitioner.h"
#include "common/strategy/masters.h"
#include "common/strategy/rank_maps.h"
#include "common/topology/builders.h"
#include "common/topology/subset.h"
#include "tests/unit/coordinator/fleet.h"

namespace gleaner::coordinator {
namespace {

using collective::MasterCounts;
using testing::HasSubstr;
using testing::SizeIs;

constexpr uint32_t kWorkers = 8;
constexpr uint32_t kChunks = strategy::kChunksOfEachRank * kWorkers;
constexpr uint64_t kElements = 1 << 20;

Options two_level_options() {
  Options result = options(kWorkers, 0);
  result.reduction.strategy = collective::Spec{.algorithm = "two-level", .factors = {2, 4}};
  result.bits_per_second = 5e9;
  return result;
}

// Eight workers in two groups. A step takes as long as the worker that is slowest with its load and its link.
class MasterTuningTest : public testing::Test {
 protected:
  explicit MasterTuningTest(const Options& options = two_level_options(), bool accumulates = false) : fleet(options) {
    fleet.start();
    declare("w", accumulates);
  }
  void declare(const std::string& name, bool accumulates = false) {
    for (uint32_t seat = 0; seat < kWorkers; ++seat) {
      fleet.declare(seat, {{.name = name, .elements = kElements, .accumulates = accumulates}});
    }
    fleet.settle();
  }

  const plan::Plan& plan() const { return fleet.core->plan(); }
  const collective::Spec& schedule() const { return plan().schedules[MasterTuning::schedule_of_new(plan())]; }
  MasterCounts counts() const {
    return schedule().masters.empty() ? strategy::even_masters(groups_, kChunks) : schedule().masters;
  }
  double step_seconds() const { return strategy::longest_time(counts(), groups_, links) * 4 * kElements / kChunks * 8; }
  std::vector<double> loads() const { return strategy::loads_of(counts(), groups_); }

  double jitter() { return 1 + noise * (static_cast<double>(dice_() % 2001) / 1000 - 1); }
  // Lets half a second pass, in which each worker does ten steps.
  void pass_steps() {
    steps_ += 10;
    if (measured_.epoch != fleet.epoch(0)) measured_ = {fleet.epoch(0)};
    measured_.steps += 10;
    measured_.bytes += 10 * 4 * kElements;
    measured_.communication_seconds += 10 * (ignores_masters ? 0.1 : step_seconds()) * jitter();
    for (uint32_t worker = 0; worker < kWorkers; ++worker) {
      control::Report report{.steps = steps_, .measured = {measured_}, .round_trip_seconds = 100e-6};
      report.link_bits_per_second = (rates.empty() ? links : rates)[worker] * jitter();
      fleet.core->on_report(fleet.members[worker].stream, report, fleet.now, fleet.actions);
    }
    fleet.pass(absl::Milliseconds(500));
    auto& inbox = fleet.members[0].inbox;
    for (const Message& message : std::exchange(inbox, {})) {
      if (!std::holds_alternative<CountPushPulls>(message)) {
        inbox.push_back(message);
        continue;
      }
      ++questions;
      const std::vector<uint64_t> counts(plan().tensors.size(), steps_);
      fleet.core->on_push_pulls(fleet.members[0].stream, fleet.epoch(0), counts, fleet.now, fleet.actions);
    }
    fleet.collect();
    fleet.settle();
  }
  void run(absl::Duration time) {
    for (const absl::Duration end = fleet.now + time; fleet.now < end;) pass_steps();
  }

  Fleet fleet;
  std::vector<double> links = std::vector<double>(kWorkers, 5e9);
  double noise = 0.05;
  int questions = 0;             // about push_pulls, to worker 0
  std::vector<double> rates;     // that workers report; empty: those of the links
  bool ignores_masters = false;  // steps take as long with all masters

 private:
  const collective::Groups groups_ = collective::even_groups(kWorkers, 2);
  std::mt19937_64 dice_{3};
  uint64_t steps_ = 0;
  control::Measured measured_;
};

double ratio_of_extremes(const std::vector<double>& values) {
  return std::ranges::max(values) / std::ranges::min(values);
}

TEST_F(MasterTuningTest, EqualLinksChangeNothing) {
  run(absl::Minutes(2));
  EXPECT_EQ(plan().epoch, 2u);
}

// Luo §6.2.6: node 0 falls from 5 to 2 Gbit/s, and recovers.
TEST_F(MasterTuningTest, MastersFollowALink) {
  run(absl::Seconds(20));
  links[0] = 2e9;
  const double before = step_seconds();
  run(absl::Seconds(40));
  EXPECT_LT(step_seconds(), 0.7 * before);
  EXPECT_EQ(counts().local[0], 0u) << "it gives away all that it can";
  // Each group has a local master of each chunk, so those of the first group carry more.
  const std::vector<double> carried = loads();
  EXPECT_LT(ratio_of_extremes({carried.begin() + 1, carried.begin() + 4}), 1.05);
  EXPECT_LT(ratio_of_extremes({carried.begin() + 4, carried.end()}), 1.06) << "2 of 16 chunks";
  const uint32_t epoch = plan().epoch;
  run(absl::Minutes(2));
  EXPECT_EQ(plan().epoch, epoch) << "it is balanced";

  links[0] = 5e9;
  run(absl::Seconds(40));
  EXPECT_LT(ratio_of_extremes(loads()), 1.05);
  EXPECT_LE(plan().epoch, epoch + 2);
  EXPECT_EQ(plan::validate(plan()), absl::OkStatus());
}

// A worker with few masterships waits for others, and so shows less than the rate of its link.
TEST_F(MasterTuningTest, TheWholeRateOfALinkShowsOnlyUnderLoad) {
  const auto run_with_rates = [&](absl::Duration time) {
    for (const absl::Duration end = fleet.now + time; fleet.now < end;) {
      rates = links;
      if (counts().local[0] == 0) rates[0] = std::min(rates[0], 3e9);
      pass_steps();
    }
  };
  run_with_rates(absl::Seconds(20));
  links[0] = 2e9;
  run_with_rates(absl::Seconds(40));
  EXPECT_EQ(counts().local[0], 0u);
  links[0] = 5e9;
  run_with_rates(absl::Seconds(40));
  EXPECT_LT(ratio_of_extremes(loads()), 1.05);
  EXPECT_THAT(fleet.core->summary().strategy_changes.back().why, HasSubstr("the link of worker 0 has become faster"));
}

TEST_F(MasterTuningTest, ALinkThatIsOnlyALittleFasterGetsNoMoreThanItCarries) {
  links[0] = 2e9;
  run(absl::Seconds(40));
  links[0] = 3e9;
  run(absl::Minutes(1));
  const double seconds = step_seconds();
  const uint32_t epoch = plan().epoch;
  links[0] = 5e9;
  const double with_fast_link = step_seconds();
  links[0] = 3e9;
  EXPECT_LT(seconds, 1.05 * with_fast_link) << "it does not limit the step";
  run(absl::Minutes(10));
  EXPECT_EQ(plan().epoch, epoch);
}

TEST_F(MasterTuningTest, TheSummaryTellsWhy) {
  run(absl::Seconds(20));
  links[3] = 2e9;
  run(absl::Seconds(20));
  const Summary summary = fleet.core->summary();
  ASSERT_THAT(summary.strategy_changes, SizeIs(1));
  const StrategyChange& change = summary.strategy_changes[0];
  EXPECT_EQ(change.from, "two-level 2,4 with even masters");
  EXPECT_THAT(change.why, HasSubstr("the link of worker 3 is 2.5 times slower than the median one"));
  EXPECT_LT(change.seconds_after, 0.7 * change.seconds_before);
  EXPECT_NEAR(change.seconds_after, step_seconds(), 0.2 * step_seconds());
  EXPECT_EQ(change.tensors, 1u);
  ASSERT_THAT(summary.mapped, SizeIs(1));
  EXPECT_EQ(summary.mapped[0].spec.masters, counts());
}

TEST_F(MasterTuningTest, NewTensorsHaveTheSameMasters) {
  run(absl::Seconds(20));
  links[0] = 2e9;
  run(absl::Seconds(40));
  declare("v");
  ASSERT_THAT(plan().tensors, SizeIs(2));
  EXPECT_EQ(plan().tensors[0].schedule, plan().tensors[1].schedule);
  links[0] = 5e9;
  run(absl::Seconds(40));
  EXPECT_EQ(plan().tensors[0].schedule, plan().tensors[1].schedule);
  EXPECT_LT(ratio_of_extremes(loads()), 1.05);
}

TEST_F(MasterTuningTest, UnknownRatesChangeNothing) {
  links[0] = 1e9;
  rates.assign(kWorkers, 0);
  run(absl::Minutes(1));
  EXPECT_EQ(plan().epoch, 2u);
}

// No change makes steps shorter, and the rates change three times a minute.
TEST_F(MasterTuningTest, PlansThatDoNotHelpBecomeRare) {
  ignores_masters = true;
  std::mt19937_64 dice(7);
  const auto plans_in = [&](int minutes) {
    const uint32_t before = plan().epoch;
    for (int i = 0; i < 3 * minutes; ++i) {
      for (double& link : links) link = 1e9 * static_cast<double>(1 + dice() % 9);
      run(absl::Seconds(20));
    }
    return plan().epoch - before;
  };
  EXPECT_GT(plans_in(10), 2u);
  EXPECT_LE(plans_in(30), 6u);
}

TEST_F(MasterTuningTest, HarmfulMastersGoBack) {
  run(absl::Seconds(20));
  const auto first = plan().tensors[0].schedule;
  rates = links;
  for (const uint32_t worker : {0u, 1u, 4u}) rates[worker] = 1e9;  // by these rates alone
  for (int i = 0; i < 60 && plan().epoch == 2; ++i) pass_steps();
  EXPECT_NE(plan().tensors[0].schedule, first);
  run(absl::Seconds(30));
  EXPECT_EQ(plan().tensors[0].schedule, first);
  const uint32_t epoch = plan().epoch;
  run(absl::Minutes(10));
  EXPECT_EQ(plan().epoch, epoch) << "no link changes";
}

class OnlyAccumulating : public MasterTuningTest {
 protected:
  OnlyAccumulating() : MasterTuningTest(two_level_options(), true) {}
};

TEST_F(OnlyAccumulating, HasNoMasters) {
  ignores_masters = true;
  run(absl::Seconds(20));
  links[0] = 2e9;
  run(absl::Minutes(2));
  EXPECT_EQ(plan().epoch, 2u);
}

// A change is judged by steps that another link has made longer.
TEST_F(MasterTuningTest, LinksMayFallOneAfterTheOther) {
  for (absl::Duration delay; delay < absl::Seconds(8); delay += absl::Milliseconds(500)) {
    links.assign(kWorkers, 5e9);
    run(absl::Minutes(1));
    links[0] = 2e9;
    run(delay);
    links[1] = 2e9;
    run(absl::Minutes(1));
    EXPECT_EQ(counts().local[0] + counts().local[1], 0u) << delay;
  }
}

// As for a worker that sends to the other workers of its machine only.
TEST_F(MasterTuningTest, AWorkerWithoutMastershipsMaySendNothingByTcp) {
  run(absl::Seconds(20));
  const auto run_without_rate = [&](absl::Duration time) {
    for (const absl::Duration end = fleet.now + time; fleet.now < end; pass_steps()) {
      rates = links;
      if (counts().local[0] == 0) rates[0] = 0;
    }
  };
  links[0] = 2e9;
  run_without_rate(absl::Seconds(40));
  ASSERT_EQ(counts().local[0], 0u);
  links[5] = 2e9;
  run_without_rate(absl::Seconds(40));
  EXPECT_EQ(counts().local[5], 0u);
}

TEST_F(MasterTuningTest, AFullPlanChangesAmongItsSchedules) {
  std::mt19937_64 dice(7);
  for (int i = 0; i < 300 && plan().schedules.size() < plan::kMaxSchedules; ++i) {
    for (double& link : links) link = 1e9 * static_cast<double>(2 + dice() % 8);
    run(absl::Seconds(20));
  }
  ASSERT_EQ(plan().schedules.size(), plan::kMaxSchedules);
  links.assign(kWorkers, 5e9);
  run(absl::Minutes(1));
  EXPECT_LT(ratio_of_extremes(loads()), 1.3);
  links[2] = 2e9;
  const int before = questions;
  run(absl::Minutes(5));
  EXPECT_LE(questions, before + 20);
}

// Five workers are in one rack, and three in another one.
class InUnequalRacks : public MasterTuningTest {
 protected:
  static Options in_racks() {
    Options options = two_level_options();
    options.partition_bytes = 1 << 16;
    const std::vector<uint32_t> hosts = {0, 1, 2, 3, 4, 5, 6, 7};
    options.reduction.network = std::make_shared<const strategy::JobNetwork>(
        strategy::JobNetwork{.topology = *topology::subset(*topology::racks(2, 5, {5e9, 1e9, 1e-6}), hosts)});
    return options;
  }
  InUnequalRacks() : MasterTuningTest(in_racks()) {}
};

TEST_F(InUnequalRacks, OwnersKeepTheirSharesByUplinks) {
  declare("a", true);
  const std::vector<uint64_t> owned = plan::owned_bytes(plan());
  const uint32_t epoch = plan().epoch;
  EXPECT_GT(ratio_of_extremes({owned.begin(), owned.end()}), 1.5);
  run(absl::Seconds(20));
  links[0] = 2e9;
  run(absl::Seconds(20));
  ASSERT_GT(plan().epoch, epoch);
  EXPECT_EQ(plan::owned_bytes(plan()), owned);
}

}  // namespace
}  // namespace gleaner::coordinator
