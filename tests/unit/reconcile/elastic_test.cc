// Tests of summers that join, leave and are lost while a job runs.
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

// Returns a job of four workers and two summers whose first plan is in force.
World running_by_plan() {
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

ScalingRequest request_for(const World& world) {
  ScalingRequest request;
  request.attempt = world.job.status.attempt;
  request.next_summer = world.job.status.next_summer;
  request.verdict.wanted = 2;
  return request;
}

ScalingRequest addition(const World& world, const char* node) {
  ScalingRequest request = request_for(world);
  request.verdict.wanted = 3;
  request.verdict.add = autoscale::Candidate{node, 5e8, {}, {}};
  request.verdict.code = autoscale::Code::kWorthIt;
  request.verdict.why = "it buys 9.0 % of the step";
  return request;
}

ScalingRequest removal(const World& world, uint32_t index) {
  ScalingRequest request = request_for(world);
  request.verdict.wanted = 1;
  request.verdict.code = autoscale::Code::kOwnersNeedIt;
  request.verdict.why = "machine s1 is needed by its owners: spare CPU 0 is below 0.1";
  request.verdict.remove = {{index, request.verdict.code, request.verdict.why}};
  return request;
}

TEST(Elastic, SessionIsToldTheGroupsOfANewSummer) {
  World world = running_by_plan();
  const std::vector<fabric::LabelledNode> nodes = {{"s0", {"a", "r1"}}, {"s1", {"a", "r1"}}, {"s2", {"a", "r2"}},
                                                   {"w0", {"a", "r2"}}, {"w1", {"b", "r1"}}, {"w2", {"b", "r1"}}};
  world.fabric = std::make_shared<const fabric::Fabric>(fabric::Fabric::of_labels(nodes, {{"zone"}, {"rack"}}, {}));
  world.scaling = addition(world, "s2");
  world.settle();
  ASSERT_TRUE(world.has("digits-summer-2"));
  EXPECT_THAT(world.look().tell.summer_groups, SizeIs(2)) << "it has no machine yet";
  world.run("digits-summer-2", "s2");
  const std::vector<SummerGroups> told = world.look().tell.summer_groups;
  ASSERT_THAT(told, SizeIs(3));
  EXPECT_EQ(told[2].index, 2U);
  EXPECT_THAT(told[2].names, ElementsAre("a/r2", "a"));
}

TEST(Elastic, StallIsConditionAndRareEvent) {
  World world = running_by_plan();
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

TEST(Elastic, SlowSummerIsReported) {
  World world = running_by_plan();
  world.settle();
  EXPECT_EQ(world.condition("SummerSlow"), nullptr);
  auto& members = world.session->members;
  const auto summer = std::find_if(members.begin(), members.end(),
                                   [](const auto& member) { return member.role == coordinator::Role::kSummer; });
  ASSERT_NE(summer, members.end());
  summer->slow = "a step takes 510.0 ms with it and 11.0 ms without it";
  world.settle();
  ASSERT_TRUE(world.holds("SummerSlow"));
  EXPECT_EQ(world.condition("SummerSlow")->message, absl::StrCat(summer->name, ": ", summer->slow));
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_EQ(std::count_if(world.events.begin(), world.events.end(),
                          [](const EventNote& note) { return note.reason == "SummerSlow" && note.warning; }),
            1);
  ASSERT_TRUE(world.plan.has_value());
  EXPECT_TRUE(std::any_of(world.plan->spec.members.begin(), world.plan->spec.members.end(),
                          [&](const auto& member) { return member.slow == summer->slow; }));
  summer->slow.clear();
  world.settle();
  EXPECT_FALSE(world.holds("SummerSlow"));
}

TEST(Elastic, AddedSummerHasNewNumber) {
  World world = running_by_plan();
  ASSERT_EQ(world.job.status.next_summer, 2U);
  world.scaling = addition(world, "s2");
  const Actions decision = world.look();
  ASSERT_THAT(decision.create_summers, SizeIs(1));
  EXPECT_TRUE(world.has("digits-summer-2"));
  EXPECT_EQ(decision.status.next_summer, 3U) << "the status records the number together with the pod";
  EXPECT_TRUE(world.noted("SummerAdded"));
  EXPECT_EQ(world.job.status.summers.wanted, 3U);
  EXPECT_EQ(world.job.status.summers.had, 2U);
  EXPECT_EQ(world.job.status.summers.reason, "WorthIt");
  EXPECT_THAT(world.look().create_summers, IsEmpty()) << "a request that was carried out is not repeated";
}

TEST(Elastic, RefusedSummersPauseAndAreShown) {
  World world = running_by_plan();
  world.summers_refused = {"QuotaExceeded", "exceeded quota: team", absl::Seconds(40)};
  world.scaling = addition(world, "s2");
  const Actions waiting = world.look();
  EXPECT_THAT(waiting.create_summers, IsEmpty());
  EXPECT_LE(waiting.requeue_after, absl::Seconds(40));
  EXPECT_TRUE(world.holds("SummersRefused"));
  EXPECT_EQ(world.condition("SummersRefused")->reason, "QuotaExceeded");
  EXPECT_EQ(world.condition("SummersRefused")->message, "exceeded quota: team");
  EXPECT_EQ(world.phase(), "Running");
  world.summers_refused->pause = absl::ZeroDuration();
  EXPECT_THAT(world.look().create_summers, SizeIs(1)) << "the pause is over";
  EXPECT_TRUE(world.holds("SummersRefused")) << "until a summer exists";
  world.summers_refused.reset();
  world.look();
  EXPECT_FALSE(world.holds("SummersRefused"));
}

TEST(Elastic, RefusedSummersThatNobodyWantsAreForgotten) {
  World world = running_by_plan();
  world.summers_refused = {"QuotaExceeded", "exceeded quota: team", absl::ZeroDuration()};
  world.scaling = addition(world, "s2");
  world.scaling->verdict.add.reset();
  world.look();
  ASSERT_TRUE(world.holds("SummersRefused"));
  world.scaling->verdict.wanted = 2;
  world.look();
  EXPECT_FALSE(world.holds("SummersRefused"));
}

TEST(Elastic, OutdatedRequestIsIgnored) {
  World world = running_by_plan();
  world.scaling = addition(world, "s2");
  world.scaling->attempt = 1;
  EXPECT_THAT(world.look().create_summers, IsEmpty());
  world.scaling = addition(world, "s2");
  world.scaling->next_summer = 1;
  EXPECT_THAT(world.look().create_summers, IsEmpty());
}

TEST(Elastic, NumbersOfPodsAreNotReused) {
  World world = running_by_plan();
  world.job.status.next_summer = 0;  // an older operator did not store it
  world.scaling = addition(world, "s2");
  world.look();
  EXPECT_TRUE(world.has("digits-summer-2"));
  EXPECT_EQ(world.job.status.next_summer, 3U);
}

TEST(Elastic, ReplacementHasNewNumber) {
  World world = running_by_plan();
  world.erase("digits-summer-1");
  Actions decision = world.look();
  ASSERT_THAT(decision.tell.ended, SizeIs(1));
  EXPECT_EQ(decision.tell.ended[0].role, coordinator::Role::kSummer);
  EXPECT_EQ(decision.tell.ended[0].index, 1U);
  EXPECT_FALSE(decision.tell.ended[0].how.ok());
  EXPECT_EQ(world.phase(), "Running");
  world.session->members.pop_back();
  world.look();
  EXPECT_THAT(world.look().tell.ended, IsEmpty()) << "the end of the summer is reported once";
  world.scaling = addition(world, "s1");
  world.look();
  EXPECT_TRUE(world.has("digits-summer-2"));
  EXPECT_FALSE(world.has("digits-summer-1"));
}

TEST(Elastic, FailedSummerIsRemoved) {
  World world = running_by_plan();
  world.exit("digits-summer-0", 137, "OOMKilled");
  const Actions decision = world.look();
  ASSERT_THAT(decision.tell.ended, SizeIs(1));
  EXPECT_FALSE(decision.tell.ended[0].how.ok());
  EXPECT_TRUE(world.noted("SummerLost"));
  EXPECT_FALSE(world.has("digits-summer-0"));
  EXPECT_EQ(world.phase(), "Running") << "a job never restarts because of a summer";
  EXPECT_EQ(world.job.status.restarts, 0U);
}

TEST(Elastic, LeavingSummerIsReported) {
  World world = running_by_plan();
  world.exit("digits-summer-0", 0);
  const Actions decision = world.look();
  ASSERT_THAT(decision.tell.ended, SizeIs(1));
  EXPECT_TRUE(decision.tell.ended[0].how.ok());
  EXPECT_TRUE(world.noted("SummerLeft"));
  EXPECT_FALSE(world.noted("SummerLost"));
  EXPECT_FALSE(world.has("digits-summer-0"));
}

TEST(Elastic, DeletedSummerLeavesByItself) {
  World world = running_by_plan();
  world.pod("digits-summer-0").deletion = world.now + absl::Seconds(5);
  const Actions decision = world.look();
  EXPECT_THAT(decision.tell.ended, IsEmpty());
  EXPECT_EQ(world.phase(), "Running");
}

TEST(Elastic, SummerIsReleasedBeforeDeletion) {
  World world = running_by_plan();
  world.scaling = removal(world, 1);
  const Actions decision = world.look();
  EXPECT_THAT(world.released, ElementsAre(1U));
  EXPECT_EQ(decision.tell.release[0].note.reason, "SummerRemoved");
  EXPECT_TRUE(absl::StrContains(decision.tell.release[0].note.message, "OwnersNeedIt"));
  EXPECT_THAT(decision.remove, IsEmpty()) << "the pod is removed after a plan without the summer";
  world.session->members.pop_back();
  world.exit("digits-summer-1", 0);
  world.look();
  EXPECT_FALSE(world.has("digits-summer-1"));
  EXPECT_FALSE(world.noted("SummerLost"));
  EXPECT_FALSE(world.noted("SummerLeft")) << "a requested leave is no Event";
}

TEST(Elastic, OverdueSummerIsDeleted) {
  World world = running_by_plan();
  world.scaling = removal(world, 1);
  world.scaling->overdue = {1};
  EXPECT_THAT(world.look().remove, SizeIs(1));
  EXPECT_TRUE(world.pod("digits-summer-1").deletion.has_value());
}

TEST(Elastic, UnjoinedSummerIsDeletedAtOnce) {
  World world = running_by_plan();
  world.scaling = addition(world, "s2");
  world.look();
  world.scaling = removal(world, 2);
  world.look();
  EXPECT_FALSE(world.has("digits-summer-2"));
  EXPECT_THAT(world.released, IsEmpty());
  EXPECT_TRUE(world.noted("SummerRemoved"));
}

TEST(Elastic, CoordinatorLearnsLargeBandwidthChanges) {
  World world = running_by_plan();
  EXPECT_THAT(world.look().tell.bandwidths, IsEmpty());
  world.nodes["s0"].bits_per_second = 8.5e8;
  world.nodes["w1"].bits_per_second = 5e8;
  world.scaling = request_for(world);
  world.scaling->spare_bits_per_second = {{1, 3e8}};
  const Actions decision = world.look();
  ASSERT_THAT(decision.tell.bandwidths, SizeIs(2)) << "a change of 15 % is ignored";
  EXPECT_EQ(decision.tell.bandwidths[0].role, coordinator::Role::kWorker);
  EXPECT_EQ(decision.tell.bandwidths[0].index, 1U);
  EXPECT_EQ(decision.tell.bandwidths[0].bits_per_second, 5e8);
  EXPECT_EQ(decision.tell.bandwidths[1].index, 1U);
  EXPECT_EQ(decision.tell.bandwidths[1].bits_per_second, 3e8);
}

TEST(Elastic, WorkersHaveTheSpeedOfTheirRdmaDevices) {
  World world = running_by_plan();
  world.nodes["w0"] = world.nodes["w1"] = {true, true, 1e9, {{"mlx5_0", 4e9}, {"mlx5_1", 4e9}}};
  world.nodes["s0"] = world.nodes["w0"];
  EXPECT_THAT(world.look().tell.bandwidths, IsEmpty()) << "the job names no device";
  world.job.workers.pod_template["spec"]["containers"][0]["env"] =
      nlohmann::json::array({{{"name", "GLEANER_RDMA_DEVICE"}, {"value", "mlx5_0:1, mlx5_1:1:3"}}});
  const Actions decision = world.look();
  ASSERT_THAT(decision.tell.bandwidths, SizeIs(2)) << "summers have the default route's";
  EXPECT_EQ(decision.tell.bandwidths[0].role, coordinator::Role::kWorker);
  EXPECT_EQ(decision.tell.bandwidths[0].bits_per_second, 8e9);
  world.nodes["w1"].rdma_speeds.erase("mlx5_1");
  EXPECT_THAT(world.look().tell.bandwidths, SizeIs(1)) << "a device of unknown speed leaves the default route's";
  world.job.communication.transport = api::Transport::kTcp;
  EXPECT_THAT(world.look().tell.bandwidths, IsEmpty());
}

TEST(Elastic, PlanNamesPresentMembers) {
  World world = running_by_plan();
  world.scaling = addition(world, "s2");
  world.look();
  world.run("digits-summer-2", "s2");
  world.session->members[4] = seat(coordinator::Role::kSummer, 2, 5e8);  // it has the place of summer 0 in the plan
  world.settle();
  const auto& members = world.plan->spec.members;
  ASSERT_THAT(members, SizeIs(6));
  EXPECT_EQ(members[4].name, "summer-2");
  EXPECT_EQ(members[4].node, "s2");
  EXPECT_EQ(members[4].bits_per_second, 5e8);
  EXPECT_EQ(members[5].name, "summer-1");
}

TEST(Elastic, NewOperatorKeepsSummers) {
  World world = running_by_plan();
  world.scaling = addition(world, "s2");
  world.look();
  world.run("digits-summer-2", "s2");
  world.session->members.push_back(seat(coordinator::Role::kSummer, 2, 5e8));
  world.settle();
  const auto names = world.names();
  world.session = coordinator::JobState();  // the session of another operator, which no member has joined yet
  world.session->phase = coordinator::JobState::Phase::kReattaching;
  world.scaling.reset();
  world.spare = {{"s0", 1e9}, {"s1", 1e9}, {"s2", 1e9}};
  for (int i = 0; i < 3; ++i) {
    const Actions decision = world.look();
    EXPECT_THAT(decision.create_summers, IsEmpty()) << "no pod is created twice";
    EXPECT_THAT(decision.remove, IsEmpty());
    EXPECT_THAT(decision.tell.ended, IsEmpty());
    EXPECT_EQ(decision.session->summers, 3U);
    EXPECT_THAT(decision.session->summer_bits_per_second, IsEmpty()) << "summers already have their bandwidths";
    world.now += absl::Seconds(30);
  }
  EXPECT_EQ(world.names(), names);
  EXPECT_EQ(world.job.status.next_summer, 3U);
}

TEST(Elastic, NewAttemptNumbersFromZero) {
  World world = running_by_plan();
  world.exit("digits-worker-0", 137);
  world.now += absl::Seconds(10);
  world.look();
  EXPECT_EQ(world.job.status.attempt, 1U);
  EXPECT_EQ(world.job.status.next_summer, 0U);
}

}  // namespace
}  // namespace gleaner::reconcile
