// Tests of JobEnd alone: the changes that each kind of end makes.
#include "operator/reconcile/job_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/reconcile/world.h"

namespace gleaner::reconcile {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

World running_without_session() {
  World world(2);
  world.settle();
  world.run_workers();
  world.settle();
  return world;
}

TEST(JobEnd, AbandonKeepsPodsAndStatus) {
  World world = running_without_session();
  const Observation observation = world.observe();
  const EndDecision end = JobEnd(observation).abandon(update_of(observation));
  EXPECT_EQ(end.end_session, "the job was deleted");
  EXPECT_THAT(end.remove, IsEmpty());
  EXPECT_TRUE(end.update.holds("Running"));
}

TEST(JobEnd, FailGivesReasonAndStops) {
  World world = running_without_session();
  const Observation observation = world.observe();
  const EndDecision end = JobEnd(observation).fail(update_of(observation), "DeadlineExceeded", "too long");
  EXPECT_TRUE(end.update.holds("Failed"));
  EXPECT_FALSE(end.update.holds("Running"));
  EXPECT_EQ(end.update.condition("Failed")->message, "too long");
  EXPECT_EQ(end.update.status.completion_time, world.now);
  ASSERT_THAT(end.update.events(), SizeIs(1));
  EXPECT_TRUE(end.update.events()[0].warning);
  EXPECT_EQ(end.end_session, "the job has failed");
  EXPECT_THAT(end.remove, SizeIs(2));
}

TEST(JobEnd, RestartCountsOwnFailuresOnly) {
  World world = running_without_session();
  const Observation observation = world.observe();
  const JobEnd job_end(observation);
  const EndDecision own = job_end.restart(update_of(observation), {Failure::Kind::kOwn, "OutOfMemory", "it died", {}});
  EXPECT_EQ(own.update.status.restarts, 1U);
  EXPECT_EQ(own.update.status.attempt, 1U);
  EXPECT_TRUE(own.update.holds("Restarting"));
  EXPECT_EQ(own.update.requeue(), absl::ZeroDuration());
  const EndDecision interrupted =
      job_end.restart(update_of(observation), {Failure::Kind::kInterrupted, "Evicted", "it was taken", {}});
  EXPECT_EQ(interrupted.update.status.restarts, 0U);
  EXPECT_EQ(interrupted.update.status.attempt, 1U);
  EXPECT_EQ(interrupted.end_session, "it was taken");
}

TEST(JobEnd, RestartFailsAtLimitOrPermanentFault) {
  World world = running_without_session();
  world.job.run_policy.backoff_limit = 0;
  const Observation observation = world.observe();
  const JobEnd job_end(observation);
  const EndDecision limit =
      job_end.restart(update_of(observation), {Failure::Kind::kOwn, "OutOfMemory", "it died", {}});
  ASSERT_TRUE(limit.update.holds("Failed"));
  EXPECT_EQ(limit.update.condition("Failed")->reason, "BackoffLimitExceeded");
  EXPECT_EQ(limit.update.status.attempt, 0U);
  const EndDecision fault =
      job_end.restart(update_of(observation), {Failure::Kind::kPermanent, "ContainerFailed", "exit 2", {}});
  ASSERT_TRUE(fault.update.holds("Failed"));
  EXPECT_EQ(fault.update.condition("Failed")->reason, "ContainerFailed");
  EXPECT_THAT(fault.update.condition("Failed")->message, HasSubstr("are not tried again"));
}

TEST(JobEnd, ReleasedGangIsNoRestart) {
  World world = running_without_session();
  const Observation observation = world.observe();
  const EndDecision end = JobEnd(observation).release_gang(update_of(observation), "not all ran");
  EXPECT_EQ(end.update.status.attempt, 1U);
  EXPECT_EQ(end.update.status.restarts, 0U);
  EXPECT_EQ(end.update.condition("Created")->reason, "StartDeadlineExceeded");
  EXPECT_THAT(end.remove, SizeIs(2));
}

}  // namespace
}  // namespace gleaner::reconcile
