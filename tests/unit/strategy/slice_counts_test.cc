// Tests of the numbers of slices into which the schedules of plans cut partitions.
#include "common/strategy/slice_counts.h"

#include <gmock/gmock.h>

#include "common/plan/partitioner.h"

namespace gleaner::strategy {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

plan::Plan plan_with(std::vector<plan::ScheduleParameters> schedules) {
  plan::Plan plan = *plan::make_plan({std::vector<double>(8, 1e9), {}}, {}, {});
  plan.schedules = std::move(schedules);
  return plan;
}

TEST(SliceCounts, EachScheduleOfThePlanHasOne) {
  SliceCounts counts;
  EXPECT_THAT(*counts.of(plan_with({})), IsEmpty());
  EXPECT_THAT(*counts.of(plan_with({{"double-tree"}, {"ring"}})), ElementsAre(DoubleEq(16), DoubleEq(8)));
  // A plan that is withdrawn may be followed by one whose new schedule is another.
  EXPECT_THAT(*counts.of(plan_with({{"ring"}})), ElementsAre(DoubleEq(8)));
}

TEST(SliceCounts, SchedulesMustServeTheWorkers) {
  EXPECT_THAT(SliceCounts().of(plan_with({{"blueconnect", {3, 3}}})).status().message(), HasSubstr("3"));
}

}  // namespace
}  // namespace gleaner::strategy
