// Tests of the figures that a rank publishes.
#include "comm-lib/runtime/statistics.h"

#include <gtest/gtest.h>

#include "common/plan/model.h"
#include "common/plan/partitioner.h"

namespace gleaner::runtime {
namespace {

constexpr absl::Duration kStart = absl::Hours(1);

TEST(Statistics, AreDueFourTimesASecond) {
  Statistics statistics;
  EXPECT_TRUE(statistics.is_due(kStart));
  statistics.publish(statistics.report(kStart, false, nullptr), {}, 0, nullptr, kStart);
  EXPECT_FALSE(statistics.is_due(kStart + absl::Milliseconds(249)));
  EXPECT_TRUE(statistics.is_due(kStart + absl::Milliseconds(250)));
}

TEST(Statistics, ReportWhatTheMeterCounts) {
  Statistics statistics;
  statistics.follow(1, kStart);
  statistics.begin(1000, kStart);
  EXPECT_TRUE(statistics.busy());
  statistics.end(0, 1000, true, kStart + absl::Seconds(2));
  statistics.step();
  EXPECT_FALSE(statistics.busy());
  const control::Report report = statistics.report(kStart + absl::Seconds(3), true, nullptr);
  EXPECT_EQ(report.steps, 1u);
  EXPECT_EQ(report.bytes, 1000u);
  EXPECT_DOUBLE_EQ(report.communication_seconds, 2);
  EXPECT_EQ(report.measured.size(), 1u);
  EXPECT_EQ(report.round_trip_seconds, 0) << "the rank reports no measurement";
}

TEST(StatsOf, HasTheBoundOfAStepUnderThePlan) {
  control::Report report;
  report.bytes = 8'000'000;
  report.communication_seconds = 0.5;
  EXPECT_EQ(stats_of(report, {}, nullptr).epoch, 0u);
  EXPECT_EQ(stats_of(report, {}, nullptr).bytes, 8'000'000u);
  plan::Plan plan;
  plan.epoch = 6;
  plan.workers = 2;
  plan.members.resize(2, {1e9, "127.0.0.1:1", 1, {}});
  EXPECT_EQ(stats_of(report, {}, &plan).epoch, 6u);
  EXPECT_EQ(stats_of(report, {}, &plan).bound_seconds, 0) << "no step";
  report.steps = 4;
  const gln_stats stats = stats_of(report, {}, &plan);
  EXPECT_EQ(stats.steps, 4u);
  EXPECT_DOUBLE_EQ(stats.communication_seconds, 0.5);
  EXPECT_GT(stats.bound_seconds, 0);
  EXPECT_DOUBLE_EQ(stats.bound_seconds, plan::bound_seconds(plan::fleet_of(plan), 2e6))
      << "the bound is that of the bytes of one step";
  plan.tensors = {{.name = "a", .elements = 100}, {.name = "b", .elements = 100, .schedule = 0}};
  EXPECT_EQ(stats_of(report, {}, &plan).bound_seconds, 0) << "a schedule may not reach the bound of owners";
  plan.tensors.pop_back();
  plan.members[1].bandwidth_assumed = true;
  EXPECT_EQ(stats_of(report, {}, &plan).bound_seconds, 0) << "the bandwidth of a link is unknown";
}

}  // namespace
}  // namespace gleaner::runtime
