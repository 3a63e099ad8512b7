// Tests of machines that are composed of nodes, profiles and pods, which come and go in any order.
#include "common/placement/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "tests/unit/placement/machines.h"

namespace gleaner::placement {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAreArray;

std::shared_ptr<const Node> node(const std::string& name) {
  Node node;
  node.name = name;
  node.ready = true;
  return std::make_shared<const Node>(std::move(node));
}

std::shared_ptr<const Pod> pod(const std::string& key, const std::string& role, const std::string& node,
                               double bits_per_second = 1e9) {
  Pod pod;
  pod.key = key;
  pod.job = "team/digits";
  pod.role = role;
  pod.node = node;
  pod.cpus = 0.5;
  pod.bits_per_second = bits_per_second;
  return std::make_shared<const Pod>(std::move(pod));
}

std::shared_ptr<const api::NodeProfile> profile(const std::string& name) {
  return std::make_shared<const api::NodeProfile>(spare_profile(name));
}

TEST(Fleet, AMachineCombinesNodeProfileAndPods) {
  Fleet fleet(Fleet::Taints::kRefuse);
  fleet.set_profile(profile("n1"));
  EXPECT_EQ(fleet.machine("n1"), nullptr);
  EXPECT_EQ(fleet.profiles(), 1u);
  fleet.set_node(node("n1"));
  const auto machine = fleet.machine("n1");
  ASSERT_NE(machine, nullptr);
  EXPECT_TRUE(machine->schedulable);
  EXPECT_EQ(machine->profile->status.bits_per_second, 25e9);
  EXPECT_EQ(fleet.machines().size(), 1u);
  fleet.remove_profile("n1");
  EXPECT_EQ(fleet.machine("n1")->profile, nullptr);
  EXPECT_NE(machine->profile, nullptr);  // a returned object does not change
  fleet.remove_node("n1");
  EXPECT_EQ(fleet.machine("n1"), nullptr);
  EXPECT_THAT(fleet.machines(), IsEmpty());
}

TEST(Fleet, RefusesNodesThatTakeNoPods) {
  for (const auto& [change, refused, ignored] : {std::tuple{+[](Node& node) { node.ready = false; }, false, false},
                                                 {+[](Node& node) { node.cordoned = true; }, false, false},
                                                 {+[](Node& node) { node.tainted = true; }, false, true}}) {
    Node changed = *node("n1");
    change(changed);
    Fleet refuse(Fleet::Taints::kRefuse), ignore(Fleet::Taints::kIgnore);
    refuse.set_node(std::make_shared<const Node>(changed));
    ignore.set_node(std::make_shared<const Node>(changed));
    EXPECT_EQ(refuse.machine("n1")->schedulable, refused);
    EXPECT_EQ(ignore.machine("n1")->schedulable, ignored);
  }
}

TEST(Fleet, CountsRunningPods) {
  Fleet fleet(Fleet::Taints::kRefuse);
  fleet.set_node(node("n1"));
  fleet.set_node(node("n2"));
  fleet.set_profile(profile("n1"));
  fleet.set_pod(pod("team/digits-summer-0", "summer", "n1"));
  fleet.set_pod(pod("team/digits-summer-0", "summer", "n1"));  // a repeated event
  fleet.set_pod(pod("team/digits-summer-1", "summer", "n1", 0));
  fleet.set_pod(pod("team/digits-worker-0", "worker", "n2"));
  fleet.set_pod(pod("team/digits-worker-1", "worker", ""));  // is not bound yet
  EXPECT_EQ(fleet.machine("n1")->commitment.summers, 2u);
  EXPECT_EQ(fleet.machine("n1")->commitment.summer_cpus, 1.0);
  EXPECT_EQ(fleet.machine("n1")->commitment.summer_bits_per_second, 26e9);  // the unlimited one counts with 25
  EXPECT_EQ(fleet.machine("n2")->commitment.summers, 0u);
  EXPECT_THAT(fleet.summer_nodes("team/digits"), ElementsAre("n1", "n1"));
  EXPECT_THAT(fleet.worker_nodes("team/digits"), ElementsAre("n2"));
  EXPECT_THAT(fleet.worker_nodes("team/other"), IsEmpty());

  Pod finished = *pod("team/digits-summer-1", "summer", "n1", 0);
  finished.finished = true;
  fleet.set_pod(std::make_shared<const Pod>(finished));
  EXPECT_EQ(fleet.machine("n1")->commitment.summer_bits_per_second, 1e9);
  fleet.remove_pod("team/digits-summer-0");
  fleet.remove_pod("team/digits-summer-0");
  EXPECT_EQ(fleet.machine("n1")->commitment.summers, 0u);
  EXPECT_THAT(fleet.summer_nodes("team/digits"), IsEmpty());
}

TEST(Fleet, PodsMayArriveBeforeTheirNode) {
  Fleet fleet(Fleet::Taints::kRefuse);
  fleet.set_pod(pod("team/digits-summer-0", "summer", "n1"));
  EXPECT_EQ(fleet.machine("n1"), nullptr);
  fleet.set_node(node("n1"));
  EXPECT_EQ(fleet.machine("n1")->commitment.summers, 1u);
  fleet.remove_node("n1");
  fleet.remove_pod("team/digits-summer-0");
  fleet.set_node(node("n1"));
  EXPECT_EQ(fleet.machine("n1")->commitment.summers, 0u);
}

// After any sequence of changes, the fleet must equal one to which only the last state was given.
TEST(Fleet, OnlyTheLastStateCounts) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    Fleet changed(Fleet::Taints::kRefuse);
    std::map<std::string, std::shared_ptr<const Node>> nodes;
    std::map<std::string, std::shared_ptr<const api::NodeProfile>> profiles;
    std::map<std::string, std::shared_ptr<const Pod>> pods;
    for (int step = 0; step < 300; ++step) {
      const std::string name = absl::StrCat("n", random() % 4);
      const std::string key = absl::StrCat("team/p", random() % 6);
      switch (random() % 6) {
        case 0:
          changed.set_node(nodes[name] = node(name));
          break;
        case 1:
          changed.remove_node(name), nodes.erase(name);
          break;
        case 2:
          changed.set_profile(profiles[name] = profile(name));
          break;
        case 3:
          changed.remove_profile(name), profiles.erase(name);
          break;
        case 4: {
          const std::string where = random() % 4 == 0 ? "" : name;
          changed.set_pod(pods[key] = pod(key, random() % 2 ? "summer" : "worker", where, 1e9 * (random() % 3)));
          break;
        }
        default:
          changed.remove_pod(key), pods.erase(key);
      }
    }
    Fleet fresh(Fleet::Taints::kRefuse);
    for (const auto& [name, node] : nodes) fresh.set_node(node);
    for (const auto& [name, profile] : profiles) fresh.set_profile(profile);
    for (const auto& [key, pod] : pods) fresh.set_pod(pod);
    EXPECT_EQ(changed.profiles(), fresh.profiles());
    EXPECT_EQ(changed.machines().size(), fresh.machines().size());
    EXPECT_THAT(changed.worker_nodes("team/digits"), UnorderedElementsAreArray(fresh.worker_nodes("team/digits")));
    EXPECT_THAT(changed.summer_nodes("team/digits"), UnorderedElementsAreArray(fresh.summer_nodes("team/digits")));
    for (const auto& machine : fresh.machines()) {
      const auto other = changed.machine(machine->name);
      ASSERT_NE(other, nullptr);
      EXPECT_EQ(other->profile, machine->profile);
      EXPECT_EQ(other->commitment.summers, machine->commitment.summers);
      EXPECT_EQ(other->commitment.summer_cpus, machine->commitment.summer_cpus);
      EXPECT_EQ(other->commitment.summer_bits_per_second, machine->commitment.summer_bits_per_second);
    }
  }
}

TEST(Objects, ReadsNodes) {
  const json object = json::parse(R"({"metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "a"}},
    "spec": {"taints": [{"key": "x", "effect": "PreferNoSchedule"}]},
    "status": {"conditions": [{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "True"}]}})");
  const auto read = parse_node(object);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->name, "n1");
  EXPECT_EQ(read->labels.at("topology.kubernetes.io/zone"), "a");
  EXPECT_TRUE(read->ready);
  EXPECT_FALSE(read->cordoned || read->tainted);
  json changed = object;
  changed["spec"] = {{"unschedulable", true}, {"taints", {{{"key", "gpu"}, {"effect", "NoSchedule"}}}}};
  changed["status"]["conditions"][1]["status"] = "Unknown";
  const auto other = parse_node(changed);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_FALSE(other->ready);
  EXPECT_TRUE(other->cordoned && other->tainted);
}

TEST(Objects, ReadsPods) {
  const auto read = parse_pod(json::parse(R"({"metadata": {"name": "digits-summer-0", "namespace": "team", "uid": "u1",
      "labels": {"gleaner.dev/job": "digits", "gleaner.dev/role": "summer"},
      "annotations": {"kubernetes.io/egress-bandwidth": "200M", "kubernetes.io/ingress-bandwidth": "1G"}},
    "spec": {"nodeName": "n1", "containers": [
      {"name": "summer", "resources": {"requests": {"cpu": "100m", "memory": "256Mi", "gleaner.dev/summer": "1"}}},
      {"name": "aside", "resources": {"requests": {"cpu": 1}}}, {"name": "bare"}]},
    "status": {"phase": "Running"}})"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->key, "team/digits-summer-0");
  EXPECT_EQ(read->uid, "u1");
  EXPECT_EQ(read->job, "team/digits");
  EXPECT_EQ(read->role, "summer");
  EXPECT_EQ(read->node, "n1");
  EXPECT_DOUBLE_EQ(read->cpus, 1.1);
  EXPECT_EQ(read->memory_bytes, uint64_t{256} << 20);
  EXPECT_EQ(read->bits_per_second, 200e6);
  EXPECT_TRUE(read->holds_node());
}

TEST(Objects, ASummerNeedsMoreThanItRequests) {
  const auto read = parse_pod(json::parse(R"({"metadata": {"name": "digits-summer-0", "namespace": "team",
      "labels": {"gleaner.dev/job": "digits", "gleaner.dev/role": "summer"}},
    "spec": {"containers": [{"name": "summer", "resources": {"requests": {"cpu": "2m"}}}]}})"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->cpus, kLeastCpus);
}

TEST(Objects, IgnoresPodsOfOtherPrograms) {
  const auto foreign = parse_pod(json::parse(R"({"metadata": {"name": "web", "namespace": "team",
      "annotations": {"kubernetes.io/egress-bandwidth": "much"}}, "spec": {"containers": "none"}})"));
  ASSERT_TRUE(foreign.ok()) << foreign.status();
  EXPECT_EQ(foreign->role, "");
  EXPECT_EQ(foreign->job, "");
  const auto ours = parse_pod(json::parse(R"({"metadata": {"name": "x-summer-0", "namespace": "team",
      "labels": {"gleaner.dev/job": "x", "gleaner.dev/role": "summer"},
      "annotations": {"kubernetes.io/egress-bandwidth": "much"}}, "spec": {"containers": []}})"));
  ASSERT_TRUE(ours.ok()) << ours.status();
  EXPECT_EQ(ours->bits_per_second, 0) << "the pod cannot start, and the kubelet reports the reason";
  EXPECT_FALSE(parse_pod(json::parse(R"({"metadata": {"name": "x-summer-0", "namespace": "team",
      "labels": {"gleaner.dev/job": "x", "gleaner.dev/role": "summer"}}, "spec": {"containers": "none"}})"))
                   .ok());
}

}  // namespace
}  // namespace gleaner::placement
