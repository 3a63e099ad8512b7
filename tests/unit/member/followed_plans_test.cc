#include "common/member/followed_plans.h"

#include <gtest/gtest.h>

namespace gleaner::member {
namespace {

std::shared_ptr<const plan::Plan> plan(uint32_t epoch) {
  plan::Plan plan;
  plan.epoch = epoch;
  return std::make_shared<const plan::Plan>(plan);
}

TEST(FollowedPlans, APreparedPlanMayBeCommitted) {
  FollowedPlans plans;
  EXPECT_FALSE(plans.has_begun());
  plans.prepare(plan(1));
  EXPECT_EQ(plans.prepared_epoch(), 1u);
  EXPECT_EQ(plans.committed_epoch(), 0u);
  plans.commit();
  EXPECT_TRUE(plans.has_begun());
  EXPECT_EQ(plans.prepared_epoch(), 0u);
  EXPECT_EQ(plans.committed_epoch(), 1u);
  plans.prepare(plan(2));
  plans.forget_prepared();
  EXPECT_EQ(plans.prepared(), nullptr);
  EXPECT_EQ(plans.committed_epoch(), 1u);
}

TEST(FollowedPlans, OthersFollowThePreparedPlan) {
  FollowedPlans plans;
  plans.on_owner_follows(2, false);
  EXPECT_FALSE(plans.others_follow_prepared(false)) << "no plan is prepared";
  plans.prepare(plan(2));
  EXPECT_TRUE(plans.others_follow_prepared(false));
  EXPECT_FALSE(plans.others_follow_prepared(true)) << "only a CPU summer follows it";
  plans.on_owner_follows(1, true);
  EXPECT_FALSE(plans.others_follow_prepared(true));
  plans.on_owner_follows(2, true);
  EXPECT_TRUE(plans.others_follow_prepared(true));
  plans.on_owner_follows(1, true);
  EXPECT_TRUE(plans.others_follow_prepared(true)) << "a late message of an earlier epoch";
  plans.on_owner_follows(3, false);
  EXPECT_FALSE(plans.others_follow_prepared(false)) << "another plan is in force";
}

}  // namespace
}  // namespace gleaner::member
