// Tests of what the schedules of plans do with partitions.
#include "common/strategy/schedule_cuts.h"

#include <gmock/gmock.h>

#include "common/plan/partitioner.h"
#include "common/plan/schedule_name.h"

namespace gleaner::strategy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

plan::Plan plan_with(std::vector<collective::Spec> schedules) {
  plan::Plan plan = *plan::make_plan({std::vector<double>(8, 1e9), {}}, {}, {});
  plan.schedules = std::move(schedules);
  return plan;
}

MATCHER_P(SlicesAre, slices, "") { return arg.slices == slices && arg.blocks == 1 && arg.has_partial_sums; }

TEST(ScheduleCuts, EachScheduleOfThePlanHasOne) {
  ScheduleCuts cuts;
  EXPECT_THAT(*cuts.of(plan_with({})), IsEmpty());
  EXPECT_THAT(*cuts.of(plan_with({{"double-tree"}, {"ring"}})), ElementsAre(SlicesAre(16), SlicesAre(8)));
  // A plan that is withdrawn may be followed by one whose new schedule is another.
  EXPECT_THAT(*cuts.of(plan_with({{"ring"}})), ElementsAre(SlicesAre(8)));
}

TEST(ScheduleCuts, MessagesOfGatherHoldSeveralContributions) {
  const plan::ScheduleCut cut = ScheduleCuts().of(plan_with({{plan::kGatherAlgorithm}}))->front();
  EXPECT_EQ(cut.blocks, 4u) << "in the third exchange of eight workers";
  EXPECT_FALSE(cut.has_partial_sums);
}

TEST(ScheduleCuts, SchedulesMustServeTheWorkers) {
  EXPECT_THAT(ScheduleCuts().of(plan_with({{"blueconnect", {3, 3}}})).status().message(), HasSubstr("3"));
}

}  // namespace
}  // namespace gleaner::strategy
