// Tests of the summers that a job gets, and of jobs that begin without summers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "operator/reconcile/plan_object.h"
#include "operator/reconcile/summer_choice.h"
#include "operator/reconcile/summers.h"
#include "tests/unit/reconcile/world.h"

namespace gleaner::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

World wanting(uint32_t min, uint32_t max, std::vector<placement::Candidate> spare) {
  World world(4);
  for (const char* node : {"w0", "w1", "w2", "w3"}) world.nodes[node] = {true, true, 1e9};
  world.job.communication.summers.min = min;
  world.job.communication.summers.max = max;
  world.spare = std::move(spare);
  world.settle();
  return world;
}

coordinator::MemberState summer_seat(uint32_t index, bool joined) {
  coordinator::MemberState seat;
  seat.name = absl::StrCat("summer-", index);
  seat.role = coordinator::Role::kSummer;
  seat.index = index;
  seat.joined = joined;
  return seat;
}

size_t summers(const World& world) {
  size_t count = 0;
  for (const std::string& name : world.names()) count += name.find("summer") != std::string::npos;
  return count;
}

TEST(Summers, AreCreatedOnceMachinesAreKnown) {
  World world = wanting(0, 2, {{"s0", 1e9}, {"s1", 1e9}});
  EXPECT_EQ(summers(world), 0U);
  world.run_workers();
  world.settle();
  EXPECT_EQ(summers(world), 2U);
  EXPECT_THAT(world.asked_nodes, ElementsAre("w0", "w1", "w2", "w3"));
  EXPECT_FALSE(world.wanted_session.has_value()) << "the set of summers is not decided yet";
  world.run("digits-summer-0", "s0");
  world.run("digits-summer-1", "s1");
  world.settle();
  ASSERT_TRUE(world.wanted_session.has_value());
  EXPECT_EQ(world.wanted_session->summers, 2U);
  EXPECT_EQ(world.job.status.summers_ready, 2U);
}

TEST(Summers, ManyNewOnesAreNamedInPart) {
  World world(2);
  const Observation observation = world.observe();
  StatusUpdate update(world.job, world.now);
  std::vector<placement::Candidate> machines;
  for (int i = 0; i < 300; ++i) machines.push_back({absl::StrCat("s", i), 1e9});
  EXPECT_THAT(add_summers(observation, {}, machines, "Beginning", "as many as help", update).pods, SizeIs(300));
  EXPECT_THAT(update.status.summers.last_change,
              HasSubstr("summer-9 on s9 and 290 more added: Beginning, as many as help"));
  EXPECT_THAT(update.status.summers.last_change, Not(HasSubstr("s10")));
}

TEST(Summers, PlacementUsesTheirRequests) {
  api::TrainingJob job = World(2).job;
  job.communication.summers.resources = nlohmann::json::object();
  EXPECT_DOUBLE_EQ(summer_request(job, {}).cpus, 0.1) << "the container requests less";
  job.communication.summers.resources = {{"requests", {{"cpu", "2"}, {"memory", "1Gi"}}}};
  EXPECT_DOUBLE_EQ(summer_request(job, {}).cpus, 2);
  EXPECT_EQ(summer_request(job, {}).memory_bytes, uint64_t{1} << 30);
}

TEST(Summers, JobStartsWithoutSpareMachines) {
  World world = wanting(2, 4, {});
  world.run_workers();
  world.settle();
  EXPECT_TRUE(world.noted("FewerSummers"));
  ASSERT_TRUE(world.wanted_session.has_value());
  EXPECT_EQ(world.wanted_session->summers, 0U);
  EXPECT_EQ(world.phase(), "Running");
}

TEST(Summers, AreNotMoreThanHelp) {
  // Four workers with 1 Gbit/s: with four such summers a worker's own gradient fills its link, so a fifth gains
  // nothing.
  World world = wanting(0, 8, std::vector<placement::Candidate>(8, {"s", 1e9}));
  world.run_workers();
  world.settle();
  EXPECT_EQ(summers(world), 4U);
}

TEST(Summers, AreFewerForLargerPushes) {
  api::TrainingJob job = World(4).job;
  job.communication.summers.max = 8;
  const std::vector<placement::Candidate> machines(8, {"s", 1e9});
  // A worker pushes all of its gradient. If that is twice as large as the result, it fills the link almost alone.
  WorkerMachines workers{{std::vector<double>(4, 1e9), {}, 1}, std::vector<std::string>(4)};
  EXPECT_THAT(choose_summers(job, {}, workers, machines, 0.05), SizeIs(4));
  workers.fleet.push_ratio = 2;
  EXPECT_THAT(choose_summers(job, {}, workers, machines, 0.05), IsEmpty()) << "each saves 3 % of the step";
}

TEST(Summers, PushRatioComesFromEarlierAttempt) {
  World world(2);
  EXPECT_EQ(planned_push_ratio(world.observe()), 1) << "there is no plan";
  world.plan.emplace();
  EXPECT_EQ(planned_push_ratio(world.observe()), 1) << "the plan has no tensors";
  world.plan->spec.bytes_per_step = 1000;
  world.plan->spec.push_bytes_per_step = 1500;
  world.job.status.attempt = 1;
  EXPECT_EQ(planned_push_ratio(world.observe()), 1.5);
  world.plan->spec.push_bytes_per_step = 30'000;
  EXPECT_EQ(planned_push_ratio(world.observe()), plan::kMaxPushRatio);
}

TEST(Summers, AreAtLeastMinimum) {
  World world = wanting(6, 8, std::vector<placement::Candidate>(8, {"s", 1e9}));
  world.run_workers();
  world.settle();
  EXPECT_EQ(summers(world), 6U);
}

TEST(Summers, ColocatedMeansNone) {
  World world = wanting(0, 2, {{"s0", 1e9}});
  world.job.communication.strategy = api::Strategy::kColocated;
  world.run_workers();
  world.settle();
  EXPECT_EQ(summers(world), 0U);
  EXPECT_TRUE(world.wanted_session.has_value());
}

TEST(Summers, IdleSummersAreLeftOut) {
  World world = wanting(0, 3, {{"s0", 1e9}, {"s1", 1e9}, {"s2", 1e9}});
  world.run_workers();
  world.settle();
  world.run("digits-summer-0", "s0");
  world.run("digits-summer-2", "s2");
  world.settle();
  EXPECT_FALSE(world.wanted_session.has_value());
  world.now += absl::Seconds(21);
  world.settle();
  ASSERT_TRUE(world.wanted_session.has_value());
  EXPECT_EQ(world.wanted_session->summers, 1U) << "seats are numbered without gaps";
  EXPECT_FALSE(world.has("digits-summer-1"));
  EXPECT_TRUE(world.pod("digits-summer-2").deletion.has_value());
  EXPECT_THAT(world.plan->spec.members, SizeIs(5));
}

TEST(Summers, PlanEndsPlacement) {
  World world = wanting(0, 2, {});
  world.run_workers();
  world.settle();
  world.spare = {{"s0", 1e9}};
  world.settle();
  EXPECT_EQ(summers(world), 0U);
}

TEST(Summers, BandwidthIsSmallerOfShareAndMachine) {
  World world = wanting(0, 1, {{"s0", 8e8}});
  world.nodes["s0"] = {true, true, 5e8};
  world.run_workers();
  world.settle();
  world.run("digits-summer-0", "s0");
  world.settle();
  ASSERT_TRUE(world.wanted_session.has_value());
  EXPECT_THAT(world.wanted_session->summer_bits_per_second, ElementsAre(5e8));
  world.nodes["s0"] = {true, true, 5e9};
  world.settle();
  EXPECT_THAT(world.wanted_session->summer_bits_per_second, ElementsAre(8e8));
}

TEST(Summers, JobDoesNotWaitForFailedSummer) {
  World world = wanting(0, 2, {{"s0", 1e9}, {"s1", 1e9}});
  world.run_workers();
  world.settle();
  world.run("digits-summer-0", "s0");
  world.run("digits-summer-1", "s1");
  world.settle();
  world.session.emplace();
  world.session->members = {summer_seat(0, /*joined=*/false), summer_seat(1, /*joined=*/true)};
  EXPECT_FALSE(world.look().tell.summers.has_value()) << "both summers run";
  world.exit("digits-summer-0", 1);
  const Actions decision = world.look();
  ASSERT_TRUE(decision.tell.summers.has_value());
  EXPECT_EQ(*decision.tell.summers, 1U);
  EXPECT_EQ(world.phase(), "Running") << "a job never restarts because of a summer";
}

TEST(Summers, JoinedSummerIsLostOnceCoordinatorNotices) {
  World world = wanting(0, 1, {{"s0", 1e9}});
  world.run_workers();
  world.settle();
  world.run("digits-summer-0", "s0");
  world.settle();
  world.session.emplace();
  world.session->members = {summer_seat(0, /*joined=*/true)};
  world.exit("digits-summer-0", 1);
  EXPECT_FALSE(world.look().tell.summers.has_value());
  world.session->members[0].joined = false;
  EXPECT_EQ(world.look().tell.summers, std::optional<uint32_t>(0));
}

TEST(Summers, RefusedSummerIsLeftOut) {
  World world = wanting(0, 1, {{"s0", 1e9}});
  world.run_workers();
  world.look();  // assigns ranks
  world.look();
  ASSERT_EQ(world.job.status.next_summer, 1U);
  world.erase("digits-summer-0");
  world.look();
  EXPECT_FALSE(world.wanted_session.has_value()) << "the summer may start late";
  world.now += absl::Seconds(6);
  world.look();
  EXPECT_TRUE(world.wanted_session.has_value());
  EXPECT_EQ(world.job.status.next_summer, 1U) << "a number is never reused";
}

TEST(Summers, CoordinatorLearnsEndedMembers) {
  World world = wanting(0, 0, {});
  world.run_workers();
  world.settle();
  world.session.emplace();
  world.exit("digits-worker-2", 0);
  const Actions decision = world.look();
  ASSERT_THAT(decision.tell.ended, SizeIs(1));
  EXPECT_EQ(decision.tell.ended[0].index, 2U);
  EXPECT_TRUE(decision.tell.ended[0].how.ok());
}

}  // namespace
}  // namespace gleaner::reconcile
