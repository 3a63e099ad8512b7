// Tests of the end of jobs, the removal of their pods, and suspension.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/reconcile/world.h"

namespace gleaner::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

World running_with_required_summer(uint32_t workers = 2) {
  World world(workers);
  // Two workers gain nothing from a summer, so they get one only if it is required.
  world.job.communication.summers.min = world.job.communication.summers.max = 1;
  world.spare = {{"s0", 1e9}};
  world.settle();
  world.run_workers();
  world.settle();
  if (workers > 1) world.run("digits-summer-0", "s0");
  world.settle();
  world.session.emplace();
  return world;
}

TEST(End, SucceedsWithAllWorkers) {
  World world = running_with_required_summer();
  world.exit("digits-worker-0", 0);
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_EQ(world.job.status.workers_succeeded, 1U);
  world.exit("digits-worker-1", 0);
  world.settle();
  EXPECT_EQ(world.phase(), "Succeeded");
  EXPECT_TRUE(world.job.status.completion_time.has_value());
  EXPECT_FALSE(world.holds("Running"));
  EXPECT_THAT(world.ended_sessions, ElementsAre("the job has succeeded"));
  EXPECT_TRUE(world.pod("digits-summer-0").deletion.has_value()) << "summers are removed at once";
  EXPECT_TRUE(world.has("digits-worker-0")) << "logs stay";
}

TEST(End, PolicyChoosesRemovedPods) {
  for (const auto& [policy, left] : std::vector<std::pair<api::CleanPodPolicy, size_t>>{
           {api::CleanPodPolicy::kNone, 2}, {api::CleanPodPolicy::kRunning, 1}, {api::CleanPodPolicy::kAll, 0}}) {
    World world = running_with_required_summer();
    world.job.run_policy.clean_pod_policy = policy;
    world.exit("digits-worker-0", 3);
    world.now += absl::Minutes(1);
    world.look();
    world.look();
    EXPECT_EQ(world.phase(), "Failed");
    size_t workers = 0;
    for (const std::string& name : world.names()) {
      workers += name.find("worker") != std::string::npos && !world.pod(name).deletion.has_value();
    }
    EXPECT_EQ(workers, left);
  }
}

TEST(End, JobIsRemovedAfterTtl) {
  World world = running_with_required_summer();
  world.job.run_policy.ttl_after_finished = absl::Seconds(100);
  world.exit("digits-worker-0", 0);
  world.exit("digits-worker-1", 0);
  world.settle();
  EXPECT_FALSE(world.job_removed);
  EXPECT_EQ(world.look().requeue_after, absl::Seconds(100));
  world.now += absl::Seconds(100);
  world.look();
  EXPECT_TRUE(world.job_removed);
}

TEST(End, FailsAtItsDeadline) {
  World world = running_with_required_summer();
  world.job.run_policy.active_deadline = absl::Seconds(50);
  EXPECT_LE(*world.look().requeue_after, absl::Seconds(50));
  world.now += absl::Seconds(51);
  world.settle();
  EXPECT_EQ(world.phase(), "Failed");
  EXPECT_EQ(world.condition("Failed")->reason, "DeadlineExceeded");
  EXPECT_TRUE(world.pod("digits-worker-0").deletion.has_value());
}

TEST(End, SuccessComesBeforeClockAndSuspension) {
  const auto succeeded = [] {
    World world = running_with_required_summer();
    world.now += absl::Minutes(1);  // no operator runs, and both workers end
    world.exit("digits-worker-0", 0);
    world.exit("digits-worker-1", 0);
    return world;
  };
  World late = succeeded();
  late.job.run_policy.active_deadline = absl::Seconds(50);
  late.look();
  EXPECT_EQ(late.phase(), "Succeeded");
  World suspended = succeeded();
  suspended.job.run_policy.suspend = true;
  suspended.look();
  EXPECT_EQ(suspended.phase(), "Succeeded");
  World forgotten = succeeded();
  forgotten.job.run_policy.ttl_after_finished = absl::ZeroDuration();
  forgotten.job.run_policy.active_deadline = absl::Seconds(50);
  forgotten.look();
  EXPECT_EQ(forgotten.phase(), "Succeeded");
  EXPECT_TRUE(forgotten.job_removed);
}

TEST(End, SuspendedWorkersDoNotSucceed) {
  World world = running_with_required_summer();
  world.job.run_policy.suspend = true;
  world.settle();
  // Programs may end with 0 when they are told to end.
  world.exit("digits-worker-0", 0);
  world.exit("digits-worker-1", 0);
  world.settle();
  EXPECT_EQ(world.phase(), "Suspended");
}

TEST(End, DeletedJobEndsOnlyItsSession) {
  World world = running_with_required_summer();
  world.job.meta.deletion_time = world.now;
  const Actions decision = world.look();
  EXPECT_TRUE(decision.end_session.has_value());
  EXPECT_THAT(decision.create, IsEmpty());
  EXPECT_THAT(decision.remove, IsEmpty()) << "owner references remove the pods";
}

TEST(Suspend, ResumesAsNewAttempt) {
  World world = running_with_required_summer();
  world.job.run_policy.suspend = true;
  world.settle();
  EXPECT_EQ(world.phase(), "Suspended");
  EXPECT_FALSE(world.job.status.start_time.has_value());
  for (const std::string& name : world.names()) EXPECT_TRUE(world.pod(name).deletion.has_value()) << name;
  for (const std::string& name : world.names()) world.erase(name);
  world.settle();
  EXPECT_THAT(world.names(), IsEmpty());

  world.job.run_policy.suspend = false;
  world.settle();
  EXPECT_THAT(world.names(), ElementsAre("digits-worker-0-r1", "digits-worker-1-r1"));
  EXPECT_EQ(world.job.status.restarts, 0U);
  EXPECT_TRUE(world.job.status.start_time.has_value());
  EXPECT_EQ(world.phase(), "Starting");
}

TEST(Suspend, NewSuspendedJobHasNoPods) {
  World world;
  world.job.run_policy.suspend = true;
  world.settle();
  EXPECT_THAT(world.names(), IsEmpty());
  EXPECT_EQ(world.phase(), "Suspended");
}

TEST(Suspend, FinishedJobStaysFinished) {
  World world = running_with_required_summer(1);
  world.exit("digits-worker-0", 0);
  world.settle();
  world.job.run_policy.suspend = true;
  world.settle();
  EXPECT_EQ(world.phase(), "Succeeded");
}

}  // namespace
}  // namespace gleaner::reconcile
