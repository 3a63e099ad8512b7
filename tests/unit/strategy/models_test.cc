#include "common/strategy/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/plan/schedule_name.h"

namespace gleaner::strategy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

plan::Plan plan_with(std::vector<collective::Spec> schedules) {
  plan::Plan plan;
  plan.workers = 8;
  plan.members.resize(9, {.bits_per_second = 10e9});
  plan.schedules = std::move(schedules);
  return plan;
}

absl::StatusOr<Models> models_of(const plan::Plan& plan, bool compares) {
  return model(request_for(plan, nullptr, 100e-6, 0, compares));
}

MATCHER_P(SlicesAre, slices, "") { return arg.slices == slices && arg.blocks == 1 && arg.has_partial_sums; }

TEST(Models, EachScheduleOfThePlanHasACut) {
  const plan::Plan plan = plan_with({{"double-tree"}, {"ring"}});
  for (const bool compares : {false, true}) {
    EXPECT_THAT(models_of(plan, compares)->cuts_of(plan.schedules), ElementsAre(SlicesAre(16), SlicesAre(8)));
  }
  EXPECT_THAT(models_of(plan, false)->candidates, IsEmpty());
}

TEST(Models, MessagesOfGatherHoldSeveralContributions) {
  const plan::Plan plan = plan_with({{plan::kGatherAlgorithm}});
  const plan::ScheduleCut cut = models_of(plan, false)->cuts_of(plan.schedules).front();
  EXPECT_EQ(cut.blocks, 4u) << "in the third exchange of eight workers";
  EXPECT_FALSE(cut.has_partial_sums);
}

TEST(Models, SchedulesMustServeTheWorkers) {
  for (const bool compares : {false, true}) {
    EXPECT_THAT(models_of(plan_with({{"blueconnect", {3, 3}}}), compares).status().message(), HasSubstr("3"));
  }
}

TEST(Models, SchedulesOfThePlanAreCandidates) {
  const plan::Plan plan =
      plan_with({{"two-level", {4, 2}}, {.algorithm = "ring", .rank_of = {7, 6, 5, 4, 3, 2, 1, 0}}});
  const Models first = *models_of(plan_with({}), true), more = *models_of(plan, true);
  ASSERT_EQ(more.candidates.size(), first.candidates.size() + 2);
  EXPECT_EQ(more.candidates.back().schedule, plan.schedules[1]);
}

TEST(Models, ServePlansWithTheSameOwnersAndSchedules) {
  const plan::Plan plan = plan_with({{"ring"}});
  const ModelRequest request = request_for(plan, nullptr, 100e-6, 0, true);
  const Models models = *model(request);
  const auto serves = [&](const std::function<void(plan::Plan&)>& change) {
    plan::Plan other = plan;
    change(other);
    return request.serves(other, models);
  };
  EXPECT_TRUE(serves([](plan::Plan& p) { p.members[8].address = "10.0.0.1:7000"; }));
  EXPECT_TRUE(serves([](plan::Plan& p) { p.schedules = {{"halving-doubling"}}; })) << "it is a candidate";
  EXPECT_FALSE(serves([](plan::Plan& p) { p.members[8] = {}; }));
  EXPECT_FALSE(serves([](plan::Plan& p) { p.members[8].on_standby = true; }));
  EXPECT_FALSE(serves([](plan::Plan& p) { p.members[0].bits_per_second = 1e9; }));
  EXPECT_FALSE(serves([](plan::Plan& p) { p.schedules = {{"two-level", {4, 2}}}; }));
}

}  // namespace
}  // namespace gleaner::strategy
