// Tests of the parts that decide about an attempt, each alone: GangStart, SummerPlacement, AttemptSession,
// SummerScaling, Progress.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "operator/reconcile/attempt_session.h"
#include "operator/reconcile/gang_start.h"
#include "operator/reconcile/progress.h"
#include "operator/reconcile/summer_placement.h"
#include "operator/reconcile/summer_scaling.h"
#include "tests/unit/reconcile/world.h"

namespace gleaner::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const PodSettings kAnySettings{"coordinator:7070", "gleaner:1", "low"};

World wanting_summers() {
  World world(4);
  for (const char* node : {"w0", "w1", "w2", "w3"}) world.nodes[node] = {true, true, 1e9};
  world.job.communication.summers.max = 2;
  world.spare = {{"s0", 1e9}, {"s1", 1e9}};
  world.settle();
  world.run_workers();
  return world;
}

coordinator::MemberState summer_member(uint32_t index, bool joined) {
  coordinator::MemberState member;
  member.name = absl::StrCat("summer-", index);
  member.role = coordinator::Role::kSummer;
  member.index = index;
  member.joined = joined;
  return member;
}

// Returns a job whose two summers run and whose session has a plan with them.
World with_summers() {
  World world = wanting_summers();
  world.settle();
  world.run("digits-summer-0", "s0");
  world.run("digits-summer-1", "s1");
  world.settle();
  world.session.emplace();
  world.session->phase = coordinator::JobState::Phase::kRunning;
  world.session->epoch = 1;
  world.session->members = {summer_member(0, true), summer_member(1, true)};
  return world;
}

TEST(GangStart, CreatesAllThenOpensAllGates) {
  World world(3);
  const Observation empty = world.observe();
  const StartDecision first = GangStart(empty, Workers(empty), kAnySettings).decide(update_of(empty));
  EXPECT_THAT(first.create, SizeIs(3));
  EXPECT_THAT(first.release, IsEmpty());
  EXPECT_FALSE(first.launched);
  world.look();
  const Observation complete = world.observe();
  const StartDecision second = GangStart(complete, Workers(complete), kAnySettings).decide(update_of(complete));
  EXPECT_THAT(second.create, IsEmpty());
  EXPECT_THAT(second.release, SizeIs(3));
  EXPECT_TRUE(second.launched);
  EXPECT_TRUE(second.update.holds("Created"));
  EXPECT_FALSE(second.update.holds("Running"));
}

TEST(GangStart, IsLateAfterDeadline) {
  World world(2);
  world.settle();
  world.now += world.job.run_policy.start_deadline;
  const Observation observation = world.observe();
  const StartDecision start = GangStart(observation, Workers(observation), kAnySettings).decide(update_of(observation));
  ASSERT_TRUE(start.late.has_value());
  EXPECT_THAT(*start.late, HasSubstr("startDeadlineSeconds"));
  EXPECT_FALSE(start.launched);
}

TEST(GangStart, WaitsForItsTime) {
  World world(2);
  world.job.status.next_start_time = world.now + absl::Seconds(4);
  Observation observation = world.observe();
  const StatusUpdate update = update_of(observation);
  const StartDecision start = GangStart(observation, Workers(observation), kAnySettings).decide(update);
  EXPECT_THAT(start.create, IsEmpty());
  EXPECT_EQ(start.update.requeue(), absl::Seconds(4));
  observation.now += absl::Seconds(4);
  EXPECT_THAT(GangStart(observation, Workers(observation), kAnySettings).decide(update).create, SizeIs(2));
}

TEST(SummerPlacement, NumbersPodsAndWaits) {
  World world = wanting_summers();
  const Observation observation = world.observe();
  const PlacementDecision decision =
      SummerPlacement(observation, Workers(observation), kAnySettings).decide(update_of(observation));
  EXPECT_FALSE(decision.settled);
  ASSERT_THAT(decision.create.pods, SizeIs(2));
  EXPECT_EQ(decision.create.pods[1]["metadata"]["name"], "digits-summer-1");
  EXPECT_EQ(decision.update.status.next_summer, 2U);
  EXPECT_TRUE(decision.update.requeue().has_value());
  EXPECT_THAT(world.asked_nodes, ElementsAre("w0", "w1", "w2", "w3"));
}

TEST(SummerPlacement, NeedsCandidatesOnceWorkersAreBound) {
  World world = wanting_summers();
  EXPECT_TRUE(needs_candidates(world.observe()));
  world.pod("digits-worker-3").node.clear();
  EXPECT_FALSE(needs_candidates(world.observe())) << "the machine of worker 3 is unknown";
  world.pod("digits-worker-3").node = "w3";
  world.job.run_policy.suspend = true;
  EXPECT_FALSE(needs_candidates(world.observe()));
  world.job.run_policy.suspend = false;
  world.job.status.conditions.push_back({.type = "Failed", .status = true});
  EXPECT_FALSE(needs_candidates(world.observe()));
  world.job.status.conditions.pop_back();
  world.look();  // assigns ranks
  world.look();
  EXPECT_FALSE(needs_candidates(world.observe())) << "the summers were requested";
  world = wanting_summers();
  world.spare.clear();
  world.settle();
  EXPECT_FALSE(needs_candidates(world.observe())) << "the attempt begins without summers";
}

TEST(SummerPlacement, WaitsForMissingCandidates) {
  World world = wanting_summers();
  Observation observation = world.observe();
  observation.candidates.reset();
  const PlacementDecision decision =
      SummerPlacement(observation, Workers(observation), kAnySettings).decide(update_of(observation));
  EXPECT_FALSE(decision.settled);
  EXPECT_THAT(decision.create.pods, IsEmpty());
  EXPECT_EQ(decision.update.requeue(), absl::Seconds(1));
}

TEST(SummerPlacement, IsSettledWithoutRefusedSummers) {
  World world = wanting_summers();
  world.admits = [] { return false; };
  world.look();  // assigns ranks
  world.look();
  ASSERT_EQ(world.job.status.next_summer, 2U);
  const auto settled = [&world] {
    const Observation observation = world.observe();
    return SummerPlacement(observation, Workers(observation), kAnySettings).decide(update_of(observation)).settled;
  };
  EXPECT_FALSE(settled()) << "their pods may be missing in the cache only";
  world.summers_refused = {"PodRefused", "minimum cpu usage per Container is 10m", absl::Seconds(10)};
  EXPECT_TRUE(settled());
}

TEST(SummerPlacement, IsSettledWithoutMachinesOrNeed) {
  World world = wanting_summers();
  world.spare.clear();
  Observation observation = world.observe();
  EXPECT_TRUE(SummerPlacement(observation, Workers(observation), kAnySettings).decide(update_of(observation)).settled);
  observation.job.communication.summers.max = 0;
  EXPECT_TRUE(SummerPlacement(observation, Workers(observation), kAnySettings).decide(update_of(observation)).settled);
}

TEST(AttemptSession, HasMembersOfPlan) {
  World world = with_summers();
  const Observation observation = world.observe();
  const Workers workers(observation);
  const coordinator::Options options = *AttemptSession(observation, workers).options();
  EXPECT_EQ(options.job, "team/digits/0");
  EXPECT_EQ(options.workers, 4U);
  EXPECT_EQ(options.summers, 2U);
  EXPECT_THAT(AttemptSession(observation, workers).ended_workers(), IsEmpty());
}

TEST(AttemptSession, KnowsEarlyLosses) {
  World world = with_summers();
  EXPECT_FALSE(AttemptSession(world.observe(), Workers(world.observe())).early_loss().has_value());
  world.session->phase = coordinator::JobState::Phase::kGathering;
  world.session->epoch = 0;
  world.exit("digits-summer-0", 1);
  const Observation observation = world.observe();
  const Workers workers(observation);
  const auto still_joined = AttemptSession(observation, workers).early_loss();
  ASSERT_TRUE(still_joined.has_value());
  EXPECT_FALSE(still_joined->summers.has_value()) << "the session still counts the summer";
  world.session->members[0].joined = false;
  const Observation later = world.observe();
  const auto lost = AttemptSession(later, Workers(later)).early_loss();
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->summers, std::optional<uint32_t>(1));
}

TEST(SummerScaling, ReportsEndedAndVanishedSummers) {
  World world = with_summers();
  world.exit("digits-summer-0", 137);
  world.erase("digits-summer-1");
  const Observation observation = world.observe();
  const ScalingDecision decision = SummerScaling(observation, kAnySettings).decide(update_of(observation));
  ASSERT_THAT(decision.ended, SizeIs(2));
  EXPECT_THAT(decision.ended[0].how.message(), HasSubstr("ended with 137"));
  EXPECT_THAT(decision.ended[1].how.message(), HasSubstr("is gone"));
  EXPECT_THAT(decision.remove, SizeIs(1));
  EXPECT_EQ(decision.update.events().at(0).reason, "SummerLost");
}

TEST(SummerScaling, ReleasesJoinedAndRemovesOthers) {
  World world = with_summers();
  world.session->members[1].joined = false;
  ScalingRequest request;
  for (const uint32_t index : {0U, 1U}) {
    request.verdict.remove.push_back({index, autoscale::Code::kBuysNothing, "it saves too little"});
  }
  world.scaling = request;
  const Observation observation = world.observe();
  const ScalingDecision decision = SummerScaling(observation, kAnySettings).decide(update_of(observation));
  ASSERT_THAT(decision.release, SizeIs(1));
  EXPECT_EQ(decision.release[0].index, 0U);
  ASSERT_THAT(decision.remove, SizeIs(1));
  EXPECT_EQ(decision.remove[0].name, "digits-summer-1");
}

TEST(Progress, StaysWhileSessionIsBehind) {
  World world = with_summers();
  world.job.status.epoch = 2;
  const Observation behind = world.observe();
  const Workers workers(behind);
  const ProgressDecision decision = Progress(behind, workers).decide(update_of(behind));
  EXPECT_FALSE(decision.plan.has_value());
  EXPECT_EQ(decision.update.status.epoch, 2U);
  world.session->epoch = 3;
  world.session->summary.plan_bound.seconds = 0.5;
  world.session->summary.bandwidths_known = true;
  const Observation ahead = world.observe();
  const ProgressDecision next = Progress(ahead, Workers(ahead)).decide(update_of(ahead));
  ASSERT_TRUE(next.plan.has_value());
  EXPECT_EQ(next.update.status.epoch, 3U);
  EXPECT_FALSE(next.update.status.communication.bound.empty());
}

TEST(Progress, NewLeaderLeavesThePlanUntilMembersReturn) {
  World world = with_summers();
  world.settle();
  ASSERT_EQ(world.plan->spec.epoch, 1U);
  const auto expect_nothing_written = [&world](const char* when) {
    const Actions actions = world.look();
    EXPECT_FALSE(actions.plan.has_value()) << when << ": the API server refuses a plan with an earlier epoch";
    EXPECT_EQ(actions.status.epoch, 1U) << when;
    EXPECT_TRUE(actions.session.has_value()) << when;
  };
  const coordinator::JobState running = *world.session;
  world.session.reset();
  expect_nothing_written("without a session");
  world.session.emplace();
  expect_nothing_written("before members return");
  world.job.status.epoch = 0;
  EXPECT_FALSE(world.look().plan.has_value()) << "the status may be older than the plan";
  world.session = running;
  world.session->epoch = 2;
  EXPECT_EQ(world.look().plan->spec.epoch, 2U);
}

}  // namespace
}  // namespace gleaner::reconcile
