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
  EXPECT_TRUE(plans.prepare(plan(1)));
  EXPECT_EQ(plans.prepared_epoch(), 1u);
  EXPECT_EQ(plans.committed_epoch(), 0u);
  EXPECT_EQ(*plans.commit(1), true);
  EXPECT_TRUE(plans.has_begun());
  EXPECT_EQ(plans.prepared_epoch(), 0u);
  EXPECT_EQ(plans.committed_epoch(), 1u);
  EXPECT_TRUE(plans.prepare(plan(2)));
  plans.forget_prepared();
  EXPECT_EQ(plans.prepared(), nullptr);
  EXPECT_EQ(plans.committed_epoch(), 1u);
}

TEST(FollowedPlans, ThePlanInForceIsNotTakenAgain) {
  FollowedPlans plans;
  plans.prepare(plan(1));
  ASSERT_EQ(*plans.commit(1), true);
  EXPECT_FALSE(plans.prepare(plan(1)));
  EXPECT_EQ(plans.prepared(), nullptr);
  EXPECT_EQ(*plans.commit(1), false);
}

TEST(FollowedPlans, OnlyThePreparedPlanCanBeCommitted) {
  FollowedPlans plans;
  EXPECT_TRUE(absl::IsInternal(plans.commit(1).status())) << "no plan is prepared";
  plans.prepare(plan(1));
  EXPECT_TRUE(absl::IsInternal(plans.commit(2).status()));
  EXPECT_FALSE(plans.has_begun());
}

TEST(FollowedPlans, CommitsThePlanThatOwnersFollow) {
  FollowedPlans plans;
  plans.on_owner_follows(2, false);
  EXPECT_FALSE(plans.commit_as_others(false)) << "no plan is prepared";
  plans.prepare(plan(2));
  EXPECT_FALSE(plans.commit_as_others(true)) << "only a CPU summer follows it";
  EXPECT_TRUE(plans.commit_as_others(false));
  EXPECT_EQ(plans.committed_epoch(), 2u);
  EXPECT_FALSE(plans.commit_as_others(false)) << "once";
}

TEST(FollowedPlans, CommitsOnlyTheLatestPlanThatOwnersFollow) {
  FollowedPlans plans;
  plans.prepare(plan(2));
  plans.on_owner_follows(1, true);
  EXPECT_FALSE(plans.commit_as_others(true));
  plans.on_owner_follows(3, false);
  EXPECT_FALSE(plans.commit_as_others(false)) << "another plan is in force";
  plans.on_owner_follows(2, true);
  plans.on_owner_follows(1, true);  // a late message of an earlier epoch
  EXPECT_TRUE(plans.commit_as_others(true));
}

}  // namespace
}  // namespace gleaner::member
