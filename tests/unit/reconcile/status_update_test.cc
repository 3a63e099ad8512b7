// Tests of StatusUpdate and Workers, which all parts of decide() share.
#include "operator/reconcile/status_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/workers.h"
#include "tests/unit/reconcile/world.h"

namespace gleaner::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(StatusUpdate, BeginsWithStatusOfJob) {
  World world;
  world.job.status.restarts = 3;
  const StatusUpdate update(world.job, world.now);
  EXPECT_EQ(update.status.restarts, 3U);
  EXPECT_THAT(update.events(), IsEmpty());
  EXPECT_FALSE(update.requeue().has_value());
  EXPECT_EQ(update.condition("Running"), nullptr);
  EXPECT_FALSE(update.holds("Running"));
}

TEST(StatusUpdate, StopsRunningAndStalled) {
  World world;
  StatusUpdate update(world.job, world.now);
  update.set_condition("Running", true, "WorkersRunning", "all run");
  EXPECT_TRUE(update.holds("Running"));
  update.stop_running("Finished", "");
  EXPECT_FALSE(update.holds("Running"));
  EXPECT_EQ(update.condition("Running")->observed_generation, world.job.meta.generation);
  EXPECT_EQ(update.condition("Stalled"), nullptr) << "the job was not stalled";
  update.set_condition("Stalled", true, "RanksWait", "a rank waits");
  update.set_condition("SummerSlow", true, "StepsTakeLonger", "a summer is slow");
  update.stop_running("Finished", "");
  EXPECT_FALSE(update.holds("Stalled"));
  EXPECT_FALSE(update.holds("SummerSlow"));
}

TEST(StatusUpdate, ShortestDelayCounts) {
  World world;
  StatusUpdate update(world.job, world.now);
  for (const int seconds : {10, 1, 5}) update.requeue_after(absl::Seconds(seconds));
  EXPECT_EQ(update.requeue(), absl::Seconds(1));
}

TEST(StatusUpdate, PhaseFollowsFromLatestCondition) {
  World world;
  StatusUpdate update(world.job, world.now);
  EXPECT_EQ(phase_of(update.status.conditions), "Pending");
  update.set_condition("Created", true, "", "");
  EXPECT_EQ(phase_of(update.status.conditions), "Starting");
  update.set_condition("Running", true, "", "");
  update.set_condition("Restarting", true, "", "");
  EXPECT_EQ(phase_of(update.status.conditions), "Restarting");
}

TEST(Workers, AreOfAttemptByIndex) {
  World world(2);
  EXPECT_THAT(Workers(world.observe()).pods(), ElementsAre(nullptr, nullptr));
  EXPECT_FALSE(Workers(world.observe()).all_bound());
  EXPECT_EQ(Workers(world.observe()).first_created(), absl::InfiniteFuture());
  world.settle();
  world.run("digits-worker-1", "w1");
  const Observation waiting = world.observe();
  EXPECT_THAT(Workers(waiting).pods(), SizeIs(2));
  EXPECT_EQ(Workers(waiting).pods()[1]->name, "digits-worker-1");
  EXPECT_FALSE(Workers(waiting).all_running());
  EXPECT_EQ(Workers(waiting).first_created(), world.now);
  world.run("digits-worker-0", "w0");
  const Observation running = world.observe();
  EXPECT_TRUE(Workers(running).all_running());
  EXPECT_THAT(Workers(running).nodes(), ElementsAre("w0", "w1"));
}

}  // namespace
}  // namespace gleaner::reconcile
