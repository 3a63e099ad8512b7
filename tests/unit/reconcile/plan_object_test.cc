// Tests of the ReductionPlan that is made from the coordinator's session.
#include "operator/reconcile/plan_object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/reconcile/world.h"

namespace gleaner::reconcile {
namespace {

World planned() {
  World world(2);
  // Two workers gain nothing from a summer, so they get one only if it is required.
  world.job.communication.summers.min = world.job.communication.summers.max = 1;
  world.spare = {{"s0", 1e9}};
  world.nodes = {{"w0", {true, true, 1e9}}, {"w1", {true, true, 5e8}}, {"s0", {true, true, 1e9}}};
  world.settle();
  world.run_workers();
  world.settle();
  world.run("digits-summer-0", "s0");
  world.settle();
  return world;
}

std::vector<coordinator::MemberState> seats() {
  std::vector<coordinator::MemberState> members(3);
  for (auto& member : members) member.joined = true;
  members[0].name = "worker-0";
  members[1].name = "worker-1";
  members[1].index = 1;
  members[2].name = "summer-0";
  members[2].role = coordinator::Role::kSummer;
  return members;
}

TEST(PlanObject, NamesMembersMachinesAndBandwidths) {
  const World world = planned();
  ASSERT_TRUE(world.plan.has_value());
  const auto& members = world.plan->spec.members;
  ASSERT_EQ(members.size(), 3U);
  EXPECT_EQ(members[1].name, "worker-1");
  EXPECT_EQ(members[1].node, "w1");
  EXPECT_EQ(members[1].bits_per_second, 5e8);
  EXPECT_EQ(members[2].role, "summer");
  EXPECT_EQ(world.plan->meta.owners[0].uid, "job-uid");
  EXPECT_EQ(world.plan->spec.epoch, 0U);
}

TEST(PlanObject, HasFiguresOfCoordinator) {
  World world = planned();
  coordinator::JobState session;
  session.phase = coordinator::JobState::Phase::kRunning;
  session.epoch = 2;
  session.members = seats();
  session.members[0].acknowledged_epoch = session.members[1].acknowledged_epoch = 2;
  session.members[2].owned_bytes = 1000;
  session.members[1].endpoints = {"shm://boot.1.2/shm/a", "rdma://10.0.0.1:7071", "tcp://10.0.0.1:7071"};
  session.members[2].endpoints = {"shm://boot.1.2/elsewhere/b", "tcp://10.0.0.2:7071"};
  session.summary.tensors = 4;
  session.summary.whole.steps = 10;
  session.summary.whole.bytes_per_step = 5000;  // includes the bytes that were moved at the start
  session.summary.whole.efficiency = 0.2;
  session.summary.plan_bound.seconds = 0.05;
  session.summary.window.steps = 5;
  session.summary.window.bytes_per_step = 1000;
  session.summary.window.efficiency = 0.9;
  session.summary.window.basis = coordinator::Basis::kBandwidth;
  session.summary.window.goodput_bytes_per_second = 2e6;
  world.session = session;
  world.look();
  EXPECT_EQ(world.plan->spec.epoch, 2U);
  EXPECT_EQ(world.plan->status.acknowledged, 2U);
  EXPECT_EQ(world.plan->spec.members[2].owned_bytes, 1000U);
  EXPECT_EQ(world.plan->spec.members[2].traffic_bytes, 2000U) << "n times the owned bytes";
  EXPECT_TRUE(world.plan->spec.members[1].binds) << "1000 bytes over half the bandwidth";
  EXPECT_FALSE(world.plan->spec.members[0].binds);
  const auto& members = world.plan->spec.members;
  EXPECT_TRUE(members[0].transports.empty());
  ASSERT_EQ(members[1].transports.size(), 3U);
  EXPECT_EQ(members[1].transports[0].size(), sizeof "shm:1f3a9c2b" - 1) << members[1].transports[0];
  EXPECT_EQ(members[1].transports[1], "rdma");
  EXPECT_EQ(members[2].transports, (std::vector<std::string>{members[1].transports[0], "tcp"}));
  EXPECT_EQ(world.job.status.epoch, 2U);
  EXPECT_EQ(world.job.status.communication.goodput, "2.0 MB/s");
  EXPECT_EQ(world.job.status.communication.efficiency, "90.0 %");
  EXPECT_FALSE(world.job.status.communication.bound.empty());
  EXPECT_EQ(world.plan->spec.bytes_per_step, 1000U);
  EXPECT_EQ(world.plan->spec.push_bytes_per_step, 1000U);
  EXPECT_EQ(world.plan->status.efficiency_basis, "bandwidth");
  EXPECT_EQ(world.plan->status.packs, "");
  world.session->summary.push_ratio = 2;
  world.session->summary.window.dense_bytes_per_step = 1500;
  world.session->summary.packs = {4096, 0.1, 0.2};
  world.look();
  EXPECT_EQ(world.plan->spec.push_bytes_per_step, 2000U);
  EXPECT_EQ(world.plan->spec.dense_bytes_per_step, 1500U);
  EXPECT_EQ(world.plan->spec.members[2].traffic_bytes, 4000U) << "n pushes of twice the owned bytes";
  EXPECT_EQ(world.plan->status.packs, coordinator::describe(*world.session->summary.packs));
}

TEST(PlanObject, UnknownValuesAreNamedUnknown) {
  World world = planned();
  coordinator::JobState session;
  session.phase = coordinator::JobState::Phase::kRunning;
  session.epoch = 2;
  session.members = seats();
  session.members[1].bandwidth_assumed = true;
  session.summary.tensors = 4;
  session.summary.whole.steps = 10;
  session.summary.bandwidths_known = false;
  session.summary.window.steps = 5;
  session.summary.window.bytes_per_step = 1000;
  session.summary.window.goodput_bytes_per_second = 2e6;
  session.summary.window.basis = coordinator::Basis::kUnknownBandwidth;
  world.session = session;
  world.look();
  EXPECT_EQ(world.job.status.communication.bound, "unknown");
  EXPECT_EQ(world.job.status.communication.efficiency, "unknown");
  EXPECT_EQ(world.job.status.communication.goodput, "2.0 MB/s");
  EXPECT_TRUE(world.plan->spec.members[1].bandwidth_assumed);
  EXPECT_FALSE(world.plan->spec.members[0].bandwidth_assumed);
  EXPECT_EQ(world.plan->status.efficiency_basis, "unknown_bandwidth");
}

// An object in etcd can have 1.5 MB; tests/python/test_crds.py checks the size of the largest plan.
TEST(PlanObject, LargeJobLeavesOutDetails) {
  for (const uint32_t workers : {2048u, 2049u}) {
    World world(workers);
    world.job.communication.summers.max = 0;
    world.settle();
    world.run_workers();
    world.settle();
    coordinator::JobState session;
    session.phase = coordinator::JobState::Phase::kRunning;
    session.epoch = 1;
    session.members.resize(1);
    session.members[0].joined = true;
    session.members[0].name = "worker-0";
    session.members[0].address = "10.0.0.1:7071";
    session.members[0].endpoints = {"tcp://10.0.0.1:7071"};
    world.session = session;
    world.look();
    ASSERT_TRUE(world.plan.has_value());
    ASSERT_EQ(world.plan->spec.members.size(), workers);
    EXPECT_EQ(world.plan->spec.members[0].address, "10.0.0.1:7071");
    EXPECT_EQ(world.plan->spec.members[0].transports.empty(), workers > 2048);
    EXPECT_EQ(world.plan->spec.members[0].rank.has_value(), workers <= 2048);
  }
}

TEST(PlanObject, StaysWhileMembersReturn) {
  World world = planned();
  coordinator::JobState session;
  session.epoch = 3;
  session.members = seats();
  world.session = session;
  world.look();
  ASSERT_EQ(world.plan->spec.epoch, 3U);
  world.session = coordinator::JobState();
  world.session->phase = coordinator::JobState::Phase::kReattaching;
  const Actions decision = world.look();
  EXPECT_FALSE(decision.plan.has_value());
  EXPECT_EQ(world.job.status.epoch, 3U);
  EXPECT_TRUE(decision.session.has_value()) << "members need the session to return to";
}

}  // namespace
}  // namespace gleaner::reconcile
