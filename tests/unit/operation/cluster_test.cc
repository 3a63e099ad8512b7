// Tests of the operator's view of a cluster, with a real API server.
#include "operator/service/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "tests/unit/kube/api_server.h"
#include "tests/unit/placement/machines.h"

namespace gleaner::operation {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

class ClusterTest : public kube::ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_NO_FATAL_FAILURE(server().install_crds());
    cluster_ = std::make_unique<Cluster>(env(), client(), queue_, repairs_, ns_);
    ASSERT_TRUE(cluster_->wait_synced(absl::Seconds(60)));
    job_.meta.ns = ns_;
    job_.meta.name = "job";
    job_.workers.replicas = 2;
    job_.communication.summers.max = 4;
    job_.communication.summers.resources = {{"requests", {{"cpu", "2"}, {"memory", "64Mi"}}}};
  }

  void TearDown() override {
    for (const std::string& machine : machines_) {
      EXPECT_TRUE(client().remove(kube::nodes(), "", machine, {}).ok());
      EXPECT_TRUE(client().remove(kube::node_profiles(), "", machine, {}).ok());
    }
  }

  // Adds a ready node whose profile has 10 cores and 20 Gbit/s to spare.
  void add_machine(const std::string& name, json spec = json::object()) {
    machines_.push_back(name);
    const auto node = client().create(kube::nodes(), {{"metadata", {{"name", name}}}});
    ASSERT_TRUE(node.ok()) << node.status();
    // Removes the taint that the server sets on nodes that are not ready.
    if (!spec.contains("taints")) spec["taints"] = nullptr;
    ASSERT_TRUE(client().merge_patch(kube::nodes(), "", name, {{"spec", std::move(spec)}}).ok());
    const json ready = {{"status", {{"conditions", json::array({{{"type", "Ready"}, {"status", "True"}}})}}}};
    ASSERT_TRUE(client().merge_patch(kube::nodes(), "", name, ready, "status").ok());
    api::NodeProfile profile = placement::spare_profile(name);
    profile.status.observed_time = absl::Now();
    json object = api::to_json(profile);
    ASSERT_TRUE(client().create(kube::node_profiles(), object).ok());
    const json status = {{"status", object["status"]}};
    ASSERT_TRUE(client().merge_patch(kube::node_profiles(), "", name, status, "status").ok());
  }
  void add_summer(const std::string& name, const std::string& node, const std::string& cpus) {
    const json container = {{"name", "summer"}, {"image", "summer"}, {"resources", {{"requests", {{"cpu", cpus}}}}}};
    const auto pod =
        client().create(kube::pods(), {{"metadata",
                                        {{"namespace", ns_},
                                         {"name", name},
                                         {"labels", {{api::kJobLabel, "other"}, {api::kRoleLabel, "summer"}}},
                                         {"annotations", {{"kubernetes.io/egress-bandwidth", "1G"}}}}},
                                       {"spec", {{"nodeName", node}, {"containers", json::array({container})}}}});
    ASSERT_TRUE(pod.ok()) << pod.status();
  }
  std::vector<std::string> candidates(const std::vector<std::string>& worker_nodes = {}) {
    std::vector<std::string> names;
    for (const auto& candidate : cluster_->candidates(job_, worker_nodes)) names.push_back(candidate.node);
    return names;
  }

  kube::WorkQueue queue_{*env().clock};
  kube::WorkQueue repairs_{*env().clock};
  std::unique_ptr<Cluster> cluster_;
  api::TrainingJob job_;
  std::vector<std::string> machines_;
};

TEST_F(ClusterTest, SummersArePlacedOnSuitableNodes) {
  add_machine("free");
  add_machine("workers");
  add_machine("tainted", {{"taints", json::array({{{"key", "gpu"}, {"effect", "NoSchedule"}}})}});
  add_machine("cordoned", {{"unschedulable", true}});
  EXPECT_TRUE(kube::eventually([&] { return candidates().size() == 2; }));
  EXPECT_THAT(candidates(), UnorderedElementsAre("free", "workers"));
  EXPECT_THAT(candidates({"workers"}), ElementsAre("free"));
}

TEST_F(ClusterTest, SummersOfOtherJobsTakeTheirRequests) {
  add_machine("busy");
  ASSERT_TRUE(kube::eventually([&] { return candidates().size() == 1; }));
  add_summer("small", "busy", "7");
  EXPECT_TRUE(kube::eventually([&] {
    const auto found = cluster_->candidates(job_, {});
    return found.size() == 1 && found.front().bits_per_second == 19e9;
  }));
  add_summer("large", "busy", "1500m");  // 10 cores less 8.5 are fewer than the 2 that the job's summer requests
  EXPECT_TRUE(kube::eventually([&] { return candidates().empty(); }));
  ASSERT_TRUE(client().remove(kube::pods(), ns_, "large", {.grace_period_seconds = 0}).ok());
  EXPECT_TRUE(kube::eventually([&] { return candidates().size() == 1; }));
}

}  // namespace
}  // namespace gleaner::operation
