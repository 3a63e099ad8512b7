// Summers that come, go and are lost under a running job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "operator/reconcile/plan_object.h"
#include "tests/unit/reconcile/world.h"

namespace gleaner::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

coordinator::MemberState seat(coordinator::Role role, uint32_t index, double bits = 1e9) {
  coordinator::MemberState state;
  state.role = role;
  state.index = index;
  state.name = absl::StrCat(role == coordinator::Role::kSummer ? "summer-" : "worker-", index);
  state.joined = true;
  state.bits_per_second = bits;
  return state;
}

// Four workers and two summers, and the first plan is in force.
World running() {
  World world(4);
  for (const char* node : {"w0", "w1", "w2", "w3", "s0", "s1", "s2"}) world.nodes[node] = {true, true, 1e9};
  world.job.communication.summers.max = 3;
  world.spare = {{"s0", 1e9}, {"s1", 1e9}};
  world.settle();
  world.run_workers();
  world.settle();
  world.run("digits-summer-0", "s0");
  world.run("digits-summer-1", "s1");
  world.settle();
  world.session.emplace();
  world.session->phase = coordinator::JobState::Phase::kRunning;
  world.session->epoch = 2;
  world.session->summary.summers = 2;
  for (uint32_t i = 0; i < 4; ++i) world.session->members.push_back(seat(coordinator::Role::kWorker, i));
  for (uint32_t j = 0; j < 2; ++j) world.session->members.push_back(seat(coordinator::Role::kSummer, j));
  world.settle();
  return world;
}

Wish wish_for(const World& world) {
  Wish wish;
  wish.attempt = world.job.status.attempt;
  wish.next_summer = world.job.status.next_summer;
  wish.verdict.wanted = 2;
  return wish;
}

Wish addition(const World& world, const char* node) {
  Wish wish = wish_for(world);
  wish.verdict.wanted = 3;
  wish.verdict.add = autoscale::Candidate{node, 5e8, {}, {}};
  wish.verdict.code = autoscale::Code::kWorthIt;
  wish.verdict.why = "it buys 9.0 % of the step";
  return wish;
}

Wish removal(const World& world, uint32_t index) {
  Wish wish = wish_for(world);
  wish.verdict.wanted = 1;
  wish.verdict.code = autoscale::Code::kOwnersNeedIt;
  wish.verdict.why = "machine s1 is needed by its owners: spare CPU 0 is below 0.1";
  wish.verdict.remove = {{index, wish.verdict.code, wish.verdict.why}};
  return wish;
}

TEST(Elastic, AStallIsAConditionAndAnEventOnceAMinuteAtMost) {
  World world = running();
  const auto stalls = [&world] {
    return std::count_if(world.events.begin(), world.events.end(),
                         [](const EventNote& note) { return note.reason == "Stalled" && note.warning; });
  };
  EXPECT_EQ(world.condition("Stalled"), nullptr);
  world.session->stall = "tensor 'w', step 6: worker 0 waits for worker 1, which has begun 5 steps of it";
  world.settle();
  ASSERT_TRUE(world.holds("Stalled"));
  EXPECT_EQ(world.condition("Stalled")->message, world.session->stall);
  EXPECT_EQ(world.phase(), "Running");
  world.settle();
  EXPECT_EQ(stalls(), 1);
  for (const auto& [pause, events] :
       std::vector<std::pair<absl::Duration, int>>{{absl::Seconds(20), 1}, {absl::Seconds(61), 2}}) {
    world.session->stall.clear();
    world.settle();
    EXPECT_FALSE(world.holds("Stalled"));
    world.now += pause;
    world.session->stall = "tensor 'w', step 9: worker 0 waits for worker 1, which has begun 8 steps of it";
    world.settle();
    EXPECT_TRUE(world.holds("Stalled"));
    EXPECT_EQ(stalls(), events);
  }
  world.job.run_policy.suspend = true;
  world.settle();
  EXPECT_FALSE(world.holds("Stalled"));
}

TEST(Elastic, OneMoreComesUnderANewNumber) {
  World world = running();
  ASSERT_EQ(world.job.status.next_summer, 2U);
  world.wish = addition(world, "s2");
  const Decision decision = world.look();
  ASSERT_THAT(decision.create_summers, SizeIs(1));
  EXPECT_TRUE(world.has("digits-summer-2"));
  EXPECT_EQ(decision.status.next_summer, 3U) << "on record with the pod";
  EXPECT_TRUE(world.noted("SummerAdded"));
  EXPECT_EQ(world.job.status.summers.wanted, 3U);
  EXPECT_EQ(world.job.status.summers.had, 2U);
  EXPECT_EQ(world.job.status.summers.reason, "WorthIt");
  EXPECT_THAT(world.look().create_summers, IsEmpty()) << "the wish still stands, and has been followed";
}

TEST(Elastic, AWishOfAnotherAttemptOrAnOldOneIsNotFollowed) {
  World world = running();
  world.wish = addition(world, "s2");
  world.wish->attempt = 1;
  EXPECT_THAT(world.look().create_summers, IsEmpty());
  world.wish = addition(world, "s2");
  world.wish->next_summer = 1;
  EXPECT_THAT(world.look().create_summers, IsEmpty());
}

TEST(Elastic, NumbersOfPodsThatAreThereAreNotUsedAgain) {
  World world = running();
  world.job.status.next_summer = 0;  // of an operator that did not keep it
  world.wish = addition(world, "s2");
  world.look();
  EXPECT_TRUE(world.has("digits-summer-2"));
  EXPECT_EQ(world.job.status.next_summer, 3U);
}

TEST(Elastic, ALostOneIsReplacedUnderANewNumber) {
  World world = running();
  world.erase("digits-summer-1");
  Decision decision = world.look();
  ASSERT_THAT(decision.ended, SizeIs(1));
  EXPECT_EQ(decision.ended[0].role, coordinator::Role::kSummer);
  EXPECT_EQ(decision.ended[0].index, 1U);
  EXPECT_FALSE(decision.ended[0].how.ok());
  EXPECT_EQ(world.phase(), "Running");
  world.session->members.pop_back();
  world.look();
  EXPECT_THAT(world.look().ended, IsEmpty()) << "nobody speaks of it any more";
  world.wish = addition(world, "s1");
  world.look();
  EXPECT_TRUE(world.has("digits-summer-2"));
  EXPECT_FALSE(world.has("digits-summer-1"));
}

TEST(Elastic, OneThatFailedIsToldAndCleanedUp) {
  World world = running();
  world.exit("digits-summer-0", 137, "OOMKilled");
  const Decision decision = world.look();
  ASSERT_THAT(decision.ended, SizeIs(1));
  EXPECT_FALSE(decision.ended[0].how.ok());
  EXPECT_TRUE(world.noted("SummerLost"));
  EXPECT_FALSE(world.has("digits-summer-0"));
  EXPECT_EQ(world.phase(), "Running") << "a job never restarts because of a summer";
  EXPECT_EQ(world.job.status.restarts, 0U);
}

TEST(Elastic, OneThatGaveWayToItsMachinesOwnersIsTold) {
  World world = running();
  world.exit("digits-summer-0", 0);
  const Decision decision = world.look();
  ASSERT_THAT(decision.ended, SizeIs(1));
  EXPECT_TRUE(decision.ended[0].how.ok());
  EXPECT_TRUE(world.noted("SummerLeft"));
  EXPECT_FALSE(world.noted("SummerLost"));
  EXPECT_FALSE(world.has("digits-summer-0"));
}

TEST(Elastic, OneThatIsBeingDeletedLeavesByItself) {
  World world = running();
  world.pod("digits-summer-0").deletion = world.now + absl::Seconds(5);
  const Decision decision = world.look();
  EXPECT_THAT(decision.ended, IsEmpty());
  EXPECT_EQ(world.phase(), "Running");
}

TEST(Elastic, OneToRemoveIsReleasedFirst) {
  World world = running();
  world.wish = removal(world, 1);
  const Decision decision = world.look();
  EXPECT_THAT(world.released, ElementsAre(1U));
  EXPECT_EQ(decision.release_summers[0].note.reason, "SummerRemoved");
  EXPECT_TRUE(absl::StrContains(decision.release_summers[0].note.message, "OwnersNeedIt"));
  EXPECT_THAT(decision.remove, IsEmpty()) << "the plan does without it first";
  world.session->members.pop_back();
  world.exit("digits-summer-1", 0);
  world.look();
  EXPECT_FALSE(world.has("digits-summer-1"));
  EXPECT_FALSE(world.noted("SummerLost"));
  EXPECT_FALSE(world.noted("SummerLeft")) << "it was told to";
}

TEST(Elastic, OneThatDoesNotLeaveInTimeIsDeleted) {
  World world = running();
  world.wish = removal(world, 1);
  world.wish->overdue = {1};
  EXPECT_THAT(world.look().remove, SizeIs(1));
  EXPECT_TRUE(world.pod("digits-summer-1").deletion.has_value());
}

TEST(Elastic, OneThatNeverJoinedIsDeletedAtOnce) {
  World world = running();
  world.wish = addition(world, "s2");
  world.look();
  world.wish = removal(world, 2);
  world.look();
  EXPECT_FALSE(world.has("digits-summer-2"));
  EXPECT_THAT(world.released, IsEmpty());
  EXPECT_TRUE(world.noted("SummerRemoved"));
}

TEST(Elastic, BandwidthsFollowWhenTheyAreFarOff) {
  World world = running();
  EXPECT_THAT(world.look().bandwidths, IsEmpty());
  world.nodes["s0"].bits_per_second = 8.5e8;
  world.nodes["w1"].bits_per_second = 5e8;
  world.wish = wish_for(world);
  world.wish->spare_bits_per_second = {{1, 3e8}};
  const Decision decision = world.look();
  ASSERT_THAT(decision.bandwidths, SizeIs(2)) << "15 % is left alone";
  EXPECT_EQ(decision.bandwidths[0].role, coordinator::Role::kWorker);
  EXPECT_EQ(decision.bandwidths[0].index, 1U);
  EXPECT_EQ(decision.bandwidths[0].bits_per_second, 5e8);
  EXPECT_EQ(decision.bandwidths[1].index, 1U);
  EXPECT_EQ(decision.bandwidths[1].bits_per_second, 3e8);
}

TEST(Elastic, ThePlanNamesThoseThatTakePartNow) {
  World world = running();
  world.wish = addition(world, "s2");
  world.look();
  world.run("digits-summer-2", "s2");
  world.session->members[4] = seat(coordinator::Role::kSummer, 2, 5e8);  // in the place of summer 0
  world.settle();
  const auto& members = world.plan->spec.members;
  ASSERT_THAT(members, SizeIs(6));
  EXPECT_EQ(members[4].name, "summer-2");
  EXPECT_EQ(members[4].node, "s2");
  EXPECT_EQ(members[4].bits_per_second, 5e8);
  EXPECT_EQ(members[5].name, "summer-1");
}

TEST(Elastic, ANewOperatorTakesItUpAsItIs) {
  World world = running();
  world.wish = addition(world, "s2");
  world.look();
  world.run("digits-summer-2", "s2");
  world.session->members.push_back(seat(coordinator::Role::kSummer, 2, 5e8));
  world.settle();
  const auto names = world.names();
  world.session = coordinator::JobState();  // another operator's, which knows nobody yet
  world.session->phase = coordinator::JobState::Phase::kRecovering;
  world.wish.reset();
  world.spare = {{"s0", 1e9}, {"s1", 1e9}, {"s2", 1e9}};
  for (int i = 0; i < 3; ++i) {
    const Decision decision = world.look();
    EXPECT_THAT(decision.create_summers, IsEmpty()) << "no pod is doubled";
    EXPECT_THAT(decision.remove, IsEmpty());
    EXPECT_THAT(decision.ended, IsEmpty());
    EXPECT_EQ(decision.session->summers, 3U);
    EXPECT_THAT(decision.session->summer_bits_per_second, IsEmpty()) << "they know what they have";
    world.now += absl::Seconds(30);
  }
  EXPECT_EQ(world.names(), names);
  EXPECT_EQ(world.job.status.next_summer, 3U);
}

TEST(Elastic, AnAttemptBeginsToCountAnew) {
  World world = running();
  world.exit("digits-worker-0", 137);
  world.now += absl::Seconds(10);
  world.look();
  EXPECT_EQ(world.job.status.attempt, 1U);
  EXPECT_EQ(world.job.status.next_summer, 0U);
}

}  // namespace
}  // namespace gleaner::reconcile
