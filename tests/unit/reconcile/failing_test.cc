// Tests of the condition ReconcileFailing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/draft.h"
#include "tests/unit/reconcile/world.h"

namespace gleaner::reconcile {
namespace {

constexpr char kCondition[] = "ReconcileFailing";

Failing failing_for(absl::Duration lasting) { return {lasting, "can't write the ReductionPlan: no epoch may go back"}; }

TEST(ReconcileFailing, IsToldAfterThirtySecondsAndEnds) {
  World world(2);
  world.settle();
  EXPECT_EQ(world.condition(kCondition), nullptr);
  world.failing = failing_for(absl::Seconds(29));
  EXPECT_EQ(world.look().requeue_after, absl::Seconds(1));
  EXPECT_EQ(world.condition(kCondition), nullptr);
  world.failing = failing_for(absl::Seconds(30));
  const std::string first = world.failing->why;
  for (const char* more : {", from port 53420", ", from port 53422", ", from port 53424"}) {
    world.look();
    world.failing->why = first + more;
  }
  EXPECT_TRUE(world.holds(kCondition));
  EXPECT_EQ(world.condition(kCondition)->message, first) << "a text that changes each time must not be written";
  EXPECT_EQ(std::count_if(world.events.begin(), world.events.end(),
                          [](const EventNote& event) { return event.reason == kCondition && event.urgent; }),
            1);
  world.failing.reset();
  world.look();
  EXPECT_FALSE(world.holds(kCondition));
  world.failing = failing_for(absl::Minutes(1));
  world.events.clear();
  world.look();
  EXPECT_TRUE(world.noted(kCondition)) << "each time that it begins";
}

TEST(ReconcileFailing, IsNotToldAfterAnOutage) {
  World world(2);
  world.settle();
  world.failing = Failing{absl::Minutes(1), "can't write the status: connection refused", true};
  world.look();
  EXPECT_EQ(world.condition(kCondition), nullptr);
}

TEST(ReconcileFailing, IsToldInEveryPhase) {
  for (const char* phase : {"Succeeded", "Failed", "Suspended"}) {
    World world(2);
    world.settle();
    api::set_condition(world.job.status.conditions, {phase, true, "Test", "", world.now, 1}, world.now);
    world.failing = failing_for(absl::Minutes(1));
    world.look();
    EXPECT_TRUE(world.holds(kCondition)) << phase;
  }
}

}  // namespace
}  // namespace gleaner::reconcile
