// Tests of the ranks of a job's workers: by the topology, kept for an attempt, and told to programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/fabric/network.h"
#include "common/strategy/rank_maps.h"
#include "operator/reconcile/rank_environment.h"
#include "tests/unit/reconcile/world.h"

namespace gleaner::reconcile {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;

// Returns a fabric in which node i of "w0", "w1", ... is in racks[i].
std::shared_ptr<const fabric::Fabric> in_racks(const std::vector<std::string>& racks, double uplink = 0) {
  std::vector<fabric::LabelledNode> nodes;
  for (size_t i = 0; i < racks.size(); ++i) nodes.push_back({absl::StrCat("w", i), {racks[i]}});
  std::vector<api::StatedUplink> uplinks;
  if (uplink > 0) uplinks.push_back({"rack", "", uplink});
  return std::make_shared<const fabric::Fabric>(fabric::Fabric::of_labels(nodes, {{"rack"}}, uplinks));
}

// A job of four workers on w0 to w3. Racks alternate: a worker's index does not tell its rack.
class Ranks : public ::testing::Test {
 protected:
  void run(std::shared_ptr<const fabric::Fabric> fabric) {
    world_.fabric = std::move(fabric);
    world_.settle();
    world_.run_workers();
    world_.settle();
  }
  const api::RankMap& map() { return *world_.job.status.communication.rank_map; }
  std::vector<std::string> members() {
    std::vector<std::string> names;
    for (const api::PlanMember& member : world_.plan->spec.members) {
      names.push_back(absl::StrCat(member.name, " is ", *member.rank));
    }
    return names;
  }

  World world_{4};
  const std::shared_ptr<const fabric::Fabric> alternating_ = in_racks({"a", "b", "a", "b"}, 1e9);
};

TEST_F(Ranks, FollowTheTopology) {
  run(alternating_);
  EXPECT_THAT(map().workers, ElementsAre(0, 2, 1, 3));
  ASSERT_EQ(map().groups.size(), 2U);
  EXPECT_EQ(map().groups[1].name, "b");
  EXPECT_THAT(map().groups[1].workers, ElementsAre(2, 3));
  EXPECT_EQ(map().groups[1].uplink_bits_per_second, 1e9);
  ASSERT_TRUE(map().ring.has_value());
  EXPECT_LT(map().ring->seconds, map().ring->identity_seconds);
  EXPECT_THAT(map().message, HasSubstr("2 groups"));
  EXPECT_THAT(world_.wanted_session->indices.workers, ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(members(), ElementsAre("worker-0 is 0", "worker-2 is 1", "worker-1 is 2", "worker-3 is 3"));
  EXPECT_EQ(world_.plan->spec.rank_map->message, map().message);
  EXPECT_TRUE(world_.noted("RanksAssigned"));
}

TEST_F(Ranks, WorkersPreferOneRack) {
  world_.fabric = alternating_;
  const Actions first = world_.look();
  ASSERT_EQ(first.create.size(), 4U);
  const nlohmann::json& preferred =
      first.create[0]["spec"]["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
  EXPECT_EQ(preferred[0]["podAffinityTerm"]["topologyKey"], "rack");
}

TEST_F(Ranks, ProgramsLearnTheirRank) {
  run(alternating_);
  ASSERT_EQ(world_.rank_maps.size(), 1U);
  const auto& [name, object] = *world_.rank_maps.begin();
  EXPECT_EQ(name, rank_map_object_name(world_.job));
  EXPECT_EQ(object["data"]["worker-2"], "1");
  EXPECT_EQ(object["immutable"], true);
  EXPECT_EQ(object["metadata"]["ownerReferences"][0]["uid"], "job-uid");
  EXPECT_EQ(world_.pod("digits-worker-2").rank, 1U);
}

TEST_F(Ranks, FirstWorkerHasTheFirstRank) {
  run(in_racks({"z", "b", "b", "z"}));
  EXPECT_THAT(map().workers, ElementsAre(0, 3, 1, 2));
}

TEST_F(Ranks, StayWhenTheTopologyOrTheOperatorChanges) {
  run(alternating_);
  world_.fabric = in_racks({"a", "a", "b", "b"});
  world_.session.reset();
  world_.settle();
  EXPECT_THAT(map().workers, ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(world_.wanted_session->indices.workers, ElementsAre(0, 2, 1, 3));
}

TEST_F(Ranks, MachinesThatMoveAreReported) {
  run(alternating_);
  EXPECT_EQ(world_.condition("RanksOutdated"), nullptr);
  world_.fabric = in_racks({"a", "a", "b", "b"});
  world_.settle();
  EXPECT_TRUE(world_.holds("RanksOutdated"));
  EXPECT_TRUE(world_.noted("RanksOutdated"));
  world_.fabric = alternating_;
  world_.settle();
  EXPECT_FALSE(world_.holds("RanksOutdated"));
}

TEST_F(Ranks, LabelsOfAnIdentityMayCome) {
  run(in_racks({"", "", "", ""}));
  EXPECT_EQ(world_.condition("RanksOutdated"), nullptr);
  world_.fabric = alternating_;
  world_.settle();
  EXPECT_TRUE(world_.holds("RanksOutdated"));
}

TEST_F(Ranks, NewAttemptGetsNewRanks) {
  run(alternating_);
  world_.fabric = in_racks({"a", "b", "b", "a"});
  world_.exit("digits-worker-1", 137, "OOMKilled");
  world_.now += absl::Seconds(10);
  world_.settle();
  for (uint32_t i = 0; i < 4; ++i) world_.erase(absl::StrCat("digits-worker-", i));
  ASSERT_EQ(world_.job.status.attempt, 1U);
  world_.now = *world_.job.status.next_start_time;
  world_.settle();
  world_.run_workers();
  world_.settle();
  ASSERT_EQ(map().attempt, 1U);
  EXPECT_THAT(map().workers, ElementsAre(0, 3, 1, 2));
  EXPECT_EQ(world_.rank_maps.size(), 2U);
}

TEST_F(Ranks, IdentityWithoutLabels) {
  run(in_racks({"", "", "", ""}));
  EXPECT_THAT(map().workers, IsEmpty());
  EXPECT_EQ(map().order, api::RankOrder::kIdentity);
  EXPECT_THAT(map().message, HasSubstr("no label tells the workers' machines apart"));
  EXPECT_THAT(world_.wanted_session->indices.workers, IsEmpty());
  EXPECT_EQ(world_.wanted_session->reduction.network, nullptr);
  EXPECT_EQ(world_.rank_maps.begin()->second["data"]["worker-3"], "3");  // their containers wait for the ConfigMap
  EXPECT_FALSE(world_.noted("RanksAssigned"));
}

TEST_F(Ranks, IdentityOnRequest) {
  world_.job.communication.rank_map = api::RankOrder::kIdentity;
  run(alternating_);
  EXPECT_THAT(map().workers, IsEmpty());
  EXPECT_THAT(map().groups[0].workers, ElementsAre(0, 2));
  EXPECT_EQ(world_.wanted_session->reduction.network->source, strategy::RankMapSource::kIdentity);
  EXPECT_THAT(world_.rank_maps, IsEmpty());
  EXPECT_EQ(world_.pod("digits-worker-3").rank, 3U);
}

TEST_F(Ranks, AttemptOfAnEarlierOperatorKeepsItsRanks) {
  run(alternating_);
  world_.job.status.communication.rank_map.reset();
  world_.settle();
  EXPECT_THAT(map().workers, IsEmpty());
  EXPECT_EQ(map().order, api::RankOrder::kIdentity);
  EXPECT_THAT(map().message, HasSubstr("had begun before"));
}

TEST_F(Ranks, SessionWaitsForTheStatus) {
  world_.fabric = alternating_;
  world_.settle();
  world_.run_workers();
  const Actions actions = actions_of(decide(world_.observe(), {"coordinator:7070", "gleaner:1", "low"}));
  EXPECT_TRUE(actions.status.communication.rank_map.has_value());
  EXPECT_FALSE(actions.session.has_value());
  EXPECT_FALSE(actions.plan.has_value());
}

TEST_F(Ranks, NetworkGroupsTheWorkersOfAStrategyWithRacks) {
  world_.job.communication.strategy = api::Strategy::kRacks;
  run(in_racks({"a", "b", "a", "a"}, 1e9));  // b has one node, which is at the core
  const auto* schedule = strategy::schedule_of(world_.wanted_session->reduction.strategy);
  ASSERT_NE(schedule, nullptr);
  EXPECT_THAT(schedule->group_sizes, ElementsAre(3, 1));
  World other(4);
  other.job.communication.strategy = api::Strategy::kRacks;
  other.fabric = in_racks({"a", "b", "a", "b"}, 1e9);
  other.settle();
  other.run_workers();
  other.settle();
  schedule = strategy::schedule_of(other.wanted_session->reduction.strategy);
  EXPECT_THAT(schedule->factors, ElementsAre(2, 2));
  EXPECT_EQ(other.wanted_session->reduction.network->topology.hosts()[1].name, "worker-2");
}

TEST_F(Ranks, NetworkHasSummersWhereTheirNodesAre) {
  world_.job.communication.summers.max = 2;
  world_.spare = {{"w4", 1e9}, {"w6", 1e9}};
  fabric::Fabric racks = *in_racks({"a", "a", "a", "a", "b", "b", ""}, 100e9);
  racks.set_latencies(std::vector<double>{20e-6, 30e-6}, 80e-6);
  run(std::make_shared<const fabric::Fabric>(std::move(racks)));
  world_.run("digits-summer-0", "w4");
  world_.run("digits-summer-1", "w6");
  world_.settle();
  const auto& network = world_.wanted_session->reduction.network;
  ASSERT_NE(network, nullptr);
  EXPECT_EQ(network->topology.host_count(), 4U);
  ASSERT_EQ(network->summers_at->size(), 2U);
  EXPECT_EQ(network->topology.switches()[(*network->summers_at)[0]].name, "b");
  EXPECT_EQ(network->topology.switches()[(*network->summers_at)[1]].name, "core");
  const std::vector<SummerGroups> told = world_.look().tell.summer_groups;
  ASSERT_EQ(told.size(), 2U);
  for (const SummerGroups& summer : told) {
    EXPECT_EQ(fabric::switch_of(network->topology, summer.names), (*network->summers_at)[summer.index]);
  }
  EXPECT_THAT(network->summer_latency_seconds, ElementsAre(40e-6, 10e-6, 15e-6));  // the core, a, b
}

TEST_F(Ranks, WaitingForRanksIsNoObstacle) {
  world_.settle();
  PodView& pod = world_.pod("digits-worker-0");
  pod.node = "w0";
  pod.obstacles.waiting_reason = "CreateContainerConfigError";
  pod.obstacles.waiting_message = absl::StrCat("configmap \"", rank_map_object_name(world_.job), "\" not found");
  world_.settle();
  EXPECT_EQ(world_.condition("Running")->reason, "WorkersPending");
}

TEST_F(Ranks, MissingConfigMapIsWrittenAgain) {
  run(alternating_);
  world_.rank_maps.clear();
  PodView& pod = world_.pod("digits-worker-1");
  pod.phase = PodView::Phase::kPending;
  pod.obstacles.waiting_reason = "CreateContainerConfigError";
  pod.obstacles.waiting_message = absl::StrCat("configmap \"", rank_map_object_name(world_.job), "\" not found");
  world_.look();
  EXPECT_EQ(world_.rank_maps.size(), 1U);
}

TEST_F(Ranks, SuccessfulWorkersWithoutPodKeepTheirPlace) {
  run(alternating_);
  world_.exit("digits-worker-2", 0);
  world_.settle();
  world_.erase("digits-worker-2");
  world_.settle();
  EXPECT_THAT(members(), ElementsAre("worker-0 is 0", "worker-2 is 1", "worker-1 is 2", "worker-3 is 3"));
  EXPECT_EQ(world_.plan->spec.members[1].node, "w2");
}

// Returns the variables of the first container, as NAME=VALUE or NAME<key of the ConfigMap.
std::vector<std::string> variables(const api::TrainingJob& job, uint32_t index) {
  nlohmann::json environment = nlohmann::json::array();
  add_rank_variables(job, index, environment);
  std::vector<std::string> all;
  for (const nlohmann::json& each : environment) {
    const std::string name = each["name"];
    if (name.starts_with("PET_")) continue;
    all.push_back(each.contains("value")
                      ? absl::StrCat(name, "=", each["value"].get<std::string>())
                      : absl::StrCat(name, "<", each["valueFrom"]["configMapKeyRef"]["key"].get<std::string>()));
  }
  return all;
}

TEST(RankVariables, ReferToTheConfigMap) {
  World world(2);
  EXPECT_THAT(variables(world.job, 1),
              UnorderedElementsAre("RANK<worker-1", "LOCAL_RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=1",
                                   "MASTER_ADDR=digits-worker-0.digits", "MASTER_PORT=29500"));
}

TEST(RankVariables, AreKnownBeforeWithTheIdentity) {
  World world(2);
  world.job.communication.rank_map = api::RankOrder::kIdentity;
  EXPECT_THAT(variables(world.job, 1), Contains("RANK=1"));
  EXPECT_THAT(variables(World(1).job, 0), IsSupersetOf({"RANK=0", "MASTER_ADDR=localhost"}));
}

TEST(RankVariables, LocalRanksAreLeftToTorchrun) {
  World world(3);
  world.job.workers.local_ranks = 4;
  EXPECT_THAT(variables(world.job, 2), UnorderedElementsAre("WORLD_SIZE=12", "LOCAL_WORLD_SIZE=4",
                                                            "MASTER_ADDR=digits-worker-0.digits", "MASTER_PORT=29500"));
  world.settle();
  world.run_workers();
  world.settle();
  EXPECT_EQ(world.pod("digits-worker-2").rank, 8U);
  EXPECT_EQ(world.rank_maps.begin()->second["data"]["worker-2"], "2");  // torchrun's --node-rank
}

}  // namespace
}  // namespace gleaner::reconcile
