// Tests that objects that jobs need come back, with a real API server.
#include "operator/service/object_repair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/kube/object.h"
#include "operator/reconcile/names.h"
#include "operator/service/leadership.h"
#include "tests/unit/kube/api_server.h"

namespace gleaner::operation {
namespace {

using nlohmann::json;
using reconcile::kBootstrapConfigMap;

class ObjectRepairTest : public kube::ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_NO_FATAL_FAILURE(server().install_crds());
    folder_ = testing::TempDir() + ns_;
    std::filesystem::create_directories(folder_);
    cluster_ = std::make_unique<Cluster>(env(), client(), queue_, repairs_, ns_);
    ASSERT_TRUE(cluster_->wait_synced(absl::Seconds(60)));
    options_.ns = ns_;
    options_.watch = ns_;
    options_.listen = {"127.0.0.1", 0};
    options_.service = "coordinator";
    options_.pod_ip = "10.0.0.1";
    options_.identity = "operator-0";
    options_.summer_image = "gleaner:1";
    options_.workers = 1;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Begins to lead, as an operator does when it starts.
  void lead() {
    auto leadership =
        Leadership::begin({env(), options_, client(), *cluster_, queue_, repairs_, registry_, metrics_, folder_}, 1);
    ASSERT_TRUE(leadership.ok()) << leadership.status();
    leadership_ = *std::move(leadership);
  }
  // Creates a suspended job, about whose objects its reconciler does nothing.
  void add_job() {
    api::TrainingJob job;
    job.meta.ns = ns_;
    job.meta.name = "digits";
    job.workers.replicas = 2;
    job.workers.pod_template = {{"spec", {{"containers", json::array({{{"name", "main"}, {"image", "train:1"}}})}}}};
    job.run_policy.suspend = true;
    json object = api::to_json(job);
    object.erase("status");
    const auto created = client().create(kube::training_jobs(), object);
    ASSERT_TRUE(created.ok()) << created.status();
    ASSERT_TRUE(kube::eventually([&] { return cluster_->has_jobs(ns_); }));
  }
  std::string ca() {
    const auto map = client().get(kube::config_maps(), ns_, kBootstrapConfigMap);
    return map.ok() ? kube::text_at(*map, {"data", "ca.crt"}) : "";
  }
  bool is_gone() { return absl::IsNotFound(client().get(kube::config_maps(), ns_, kBootstrapConfigMap).status()); }
  std::string selected_role() {
    const auto service = client().get(kube::services(), ns_, "digits");
    return service.ok() ? kube::text_at(*service, {"spec", "selector", api::kRoleLabel}) : "";
  }

  kube::WorkQueue queue_{*env().clock};
  kube::WorkQueue repairs_{*env().clock};
  std::string folder_;
  OperatorOptions options_;
  prometheus::Registry registry_;
  OperatorMetrics metrics_{registry_, "test"};
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Leadership> leadership_;
};

TEST_F(ObjectRepairTest, BootstrapComesBack) {
  add_job();
  lead();
  ASSERT_TRUE(kube::eventually([&] { return ca() != ""; }));
  const std::string good = ca();
  ASSERT_TRUE(client().remove(kube::config_maps(), ns_, kBootstrapConfigMap, {}).ok());
  EXPECT_TRUE(kube::eventually([&] { return ca() == good; })) << "deleted";
  const json edited = {{"data", {{"ca.crt", "mine"}}}};
  ASSERT_TRUE(client().merge_patch(kube::config_maps(), ns_, kBootstrapConfigMap, edited).ok());
  EXPECT_TRUE(kube::eventually([&] { return ca() == good; })) << "edited";
  ASSERT_TRUE(client().remove(kube::training_jobs(), ns_, "digits", {}).ok());
  EXPECT_TRUE(kube::eventually([&] { return is_gone(); })) << "the namespace has no jobs any more";
}

TEST_F(ObjectRepairTest, StartReplacesEarlierCa) {
  add_job();
  const json earlier = {{"metadata", {{"name", kBootstrapConfigMap}, {"namespace", ns_}}},
                        {"data", {{"ca.crt", "of an installation that is gone"}}}};
  ASSERT_TRUE(client().create(kube::config_maps(), earlier).ok());
  ASSERT_TRUE(kube::eventually([&] { return cluster_->bootstrap(ns_) != nullptr; }));
  lead();
  EXPECT_TRUE(kube::eventually([&] { return ca().find("BEGIN CERTIFICATE") != std::string::npos; }));
}

TEST_F(ObjectRepairTest, StartDropsBootstrapWithoutJobs) {
  const json left = {{"metadata",
                      {{"name", kBootstrapConfigMap},
                       {"namespace", ns_},
                       {"labels", {{reconcile::kManagedByLabel, reconcile::kManagedBy}}}}}};
  ASSERT_TRUE(client().create(kube::config_maps(), left).ok());
  ASSERT_TRUE(kube::eventually([&] { return cluster_->bootstrap(ns_) != nullptr; }));
  lead();
  EXPECT_TRUE(kube::eventually([&] { return is_gone(); }));
}

TEST_F(ObjectRepairTest, ServiceComesBack) {
  add_job();
  IdentityStore identities(env(), client(), ns_, {}, folder_, find_bootstrap_in(*cluster_));
  ObjectRepair repair(env(), client(), *cluster_, identities);
  const auto repaired = [&] {
    repair.reconcile(absl::StrCat(ns_, "/digits"));
    return selected_role() == "worker";
  };
  EXPECT_FALSE(repaired()) << "the job has no pods";
  const json created = {
      {"status",
       {{"conditions",
         json::array({api::to_json(api::Condition{.type = "Created", .status = true, .reason = "PodsCreated"})})}}}};
  ASSERT_TRUE(client().merge_patch(kube::training_jobs(), ns_, "digits", created, "status").ok());
  EXPECT_TRUE(kube::eventually(repaired));
  ASSERT_TRUE(client().remove(kube::services(), ns_, "digits", {}).ok());
  EXPECT_TRUE(kube::eventually(repaired)) << "deleted";
  const json edited = {{"spec", {{"selector", {{api::kRoleLabel, "summer"}}}}}};
  ASSERT_TRUE(client().merge_patch(kube::services(), ns_, "digits", edited).ok());
  EXPECT_TRUE(kube::eventually(repaired)) << "edited";
}

TEST_F(ObjectRepairTest, TopologyFollowsLabelsAndStatedUplinks) {
  const auto group = [&](const std::string& name) -> json {
    const auto object = client().get(kube::topologies(), "", api::kTopologyName);
    if (!object.ok() || !object->contains("status")) return nullptr;
    for (const json& each : (*object)["status"]["groups"]) {
      if (each["name"] == name) return each;
    }
    return nullptr;
  };
  for (const char* name : {"t1", "t2", "t3", "t4"}) {
    const std::string rack = name < std::string("t3") ? "left" : "right";
    const json labels = {{"topology.kubernetes.io/rack", rack}};
    ASSERT_TRUE(client().create(kube::nodes(), {{"metadata", {{"name", name}, {"labels", labels}}}}).ok());
  }
  lead();
  EXPECT_TRUE(kube::eventually([&] { return group("left").value("nodes", json()) == json({"t1", "t2"}); }));
  const json uplinks = {{"spec", {{"uplinks", {{{"level", "topology.kubernetes.io/rack"}, {"bandwidth", "50Gbit"}}}}}}};
  ASSERT_TRUE(client().merge_patch(kube::topologies(), "", api::kTopologyName, uplinks).ok());
  EXPECT_TRUE(kube::eventually([&] { return group("right").value("uplinkSource", "") == "Stated"; }));
  const json moved = {{"metadata", {{"labels", {{"topology.kubernetes.io/rack", "left"}}}}}};
  ASSERT_TRUE(client().merge_patch(kube::nodes(), "", "t3", moved).ok());
  EXPECT_TRUE(kube::eventually([&] { return group("left").value("nodeCount", 0) == 3; }));
  ASSERT_TRUE(client().remove(kube::topologies(), "", api::kTopologyName, {}).ok());
  EXPECT_TRUE(kube::eventually([&] { return !group("left").is_null(); })) << "it comes back";
  for (const char* name : {"t1", "t2", "t3", "t4"}) EXPECT_TRUE(client().remove(kube::nodes(), "", name, {}).ok());
}

TEST_F(ObjectRepairTest, TopologyFollowsLatencies) {
  // Racks of two nodes: 40 us within, and 80 us across.
  for (int i = 0; i < 4; ++i) {
    const std::string name = absl::StrCat("p", i);
    ASSERT_TRUE(client().create(kube::nodes(), {{"metadata", {{"name", name}}}}).ok());
    ASSERT_TRUE(client()
                    .create(kube::node_profiles(),
                            {{"apiVersion", api::kApiVersion}, {"kind", "NodeProfile"}, {"metadata", {{"name", name}}}})
                    .ok());
    json peers = json::array();
    for (int peer = 0; peer < 4; ++peer) {
      if (peer == i) continue;
      peers.push_back({{"node", absl::StrCat("p", peer)},
                       {"roundTripNanoseconds", (peer / 2 == i / 2 ? 40000 : 80000) + 100 * (peer + i)},
                       {"observedTime", absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone())}});
    }
    ASSERT_TRUE(client().merge_patch(kube::node_profiles(), "", name, {{"status", {{"peers", peers}}}}, "status").ok());
  }
  ASSERT_TRUE(kube::eventually([&] { return cluster_->profiles().size() >= 4; }));
  lead();
  EXPECT_TRUE(kube::eventually([&] {
    const auto object = client().get(kube::topologies(), "", api::kTopologyName);
    if (!object.ok() || !object->contains("status")) return false;
    const json& groups = (*object)["status"]["groups"];
    return groups.size() == 2 && groups[1]["name"] == "near-p2" && groups[1]["nodes"] == json({"p2", "p3"});
  }));
  for (const char* name : {"p0", "p1", "p2", "p3"}) {
    EXPECT_TRUE(client().remove(kube::nodes(), "", name, {}).ok());
    EXPECT_TRUE(client().remove(kube::node_profiles(), "", name, {}).ok());
  }
}

}  // namespace
}  // namespace gleaner::operation
