// Tests of workers that have succeeded, and whose pods are deleted before the job ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/reconcile/world.h"

namespace gleaner::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

World running_with_session(uint32_t workers) {
  World world(workers);
  world.settle();
  world.run_workers();
  world.settle();
  world.session.emplace();
  return world;
}

// Lets workers 0 to `count` - 1 succeed, and deletes their pods once the operator has seen them.
void succeed_and_delete(World& world, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) world.exit("digits-worker-" + std::to_string(i), 0);
  world.settle();
  for (uint32_t i = 0; i < count; ++i) world.erase("digits-worker-" + std::to_string(i));
}

TEST(Succeeded, OutlivesDeletionOfPod) {
  for (const auto& [workers, succeeded] : {std::pair{2U, 1U}, {3U, 1U}, {3U, 2U}, {8U, 7U}}) {
    World world = running_with_session(workers);
    succeed_and_delete(world, succeeded);
    world.settle();
    EXPECT_EQ(world.phase(), "Running");
    EXPECT_EQ(world.job.status.attempt, 0U);
    EXPECT_EQ(world.job.status.workers_succeeded, succeeded);
    EXPECT_EQ(world.names().size(), workers - succeeded) << "no pod is created again";
    for (uint32_t i = succeeded; i < workers; ++i) world.exit("digits-worker-" + std::to_string(i), 0);
    world.settle();
    EXPECT_EQ(world.phase(), "Succeeded");
  }
}

TEST(Succeeded, IsKnownToNextOperator) {
  World world = running_with_session(3);
  succeed_and_delete(world, 2);
  world.session.reset();  // the next operator has only the objects
  const Actions decision = world.look();
  EXPECT_THAT(decision.create, IsEmpty());
  ASSERT_TRUE(decision.session.has_value());
  ASSERT_EQ(decision.tell.ended.size(), 2U) << "the session must not wait for their return";
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(decision.tell.ended[i].index, i);
    EXPECT_TRUE(decision.tell.ended[i].how.ok());
  }
}

TEST(Succeeded, EndsJobWithoutPods) {
  World world = running_with_session(2);
  world.job.status.succeeded_indexes = {0, 1};  // written before the operator ended
  world.erase("digits-worker-0");
  world.erase("digits-worker-1");
  world.settle();
  EXPECT_EQ(world.phase(), "Succeeded");
  EXPECT_THAT(world.names(), IsEmpty());
}

TEST(Succeeded, NeedsRecord) {
  World world = running_with_session(2);
  world.exit("digits-worker-0", 0);
  world.erase("digits-worker-0");  // no operator has seen the success
  world.look();
  EXPECT_EQ(world.phase(), "Restarting");
  EXPECT_EQ(world.job.status.attempt, 1U);
  EXPECT_EQ(world.job.status.restarts, 0U);
}

TEST(Succeeded, CountsForOneAttempt) {
  World world = running_with_session(3);
  succeed_and_delete(world, 1);
  world.exit("digits-worker-1", 0);
  world.exit("digits-worker-2", 137);
  world.now += absl::Minutes(1);
  world.look();
  EXPECT_EQ(world.job.status.attempt, 1U);
  EXPECT_THAT(world.job.status.succeeded_indexes, IsEmpty());
  world.now += absl::Minutes(1);
  world.settle();
  for (const char* name : {"digits-worker-0-r1", "digits-worker-1-r1", "digits-worker-2-r1"}) {
    EXPECT_TRUE(world.has(name)) << name;
  }
  EXPECT_EQ(world.job.status.workers_succeeded, 0U) << "the pod of worker 1 of the first attempt still exists";
}

TEST(Succeeded, EndsWithSuspension) {
  World world = running_with_session(2);
  succeed_and_delete(world, 1);
  world.job.run_policy.suspend = true;
  world.settle();
  EXPECT_EQ(world.job.status.workers_succeeded, 0U);
  world.erase("digits-worker-1");
  world.job.run_policy.suspend = false;
  world.settle();
  EXPECT_THAT(world.names(), ElementsAre("digits-worker-0-r1", "digits-worker-1-r1"));
}

TEST(Succeeded, KeepsNodeInPlan) {
  World world = running_with_session(2);
  succeed_and_delete(world, 1);
  world.settle();
  ASSERT_EQ(world.plan->spec.members.size(), 2U);
  EXPECT_EQ(world.plan->spec.members[0].node, "w0");
  EXPECT_EQ(world.plan->spec.members[1].node, "w1");
}

TEST(Succeeded, LostWorkerBesideItRestartsAll) {
  World world = running_with_session(3);
  succeed_and_delete(world, 1);
  world.erase("digits-worker-2");
  world.look();
  EXPECT_EQ(world.phase(), "Restarting");
  EXPECT_EQ(world.job.status.attempt, 1U);
}

}  // namespace
}  // namespace gleaner::reconcile
