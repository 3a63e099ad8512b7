// Tests of pods' requests as the scheduler counts them, of the node's state, and of the profile's status.
#include <gmock/gmock.h>

#include "agent/publish/node.h"
#include "agent/publish/nvml_report.h"
#include "agent/publish/pods.h"
#include "agent/publish/profile.h"

namespace gleaner::publish {
namespace {

using nlohmann::json;

json container(const std::string& cpu, const std::string& memory, const std::string& restart = "") {
  json object = {{"name", "c"}, {"resources", {{"requests", {{"cpu", cpu}, {"memory", memory}}}}}};
  if (!restart.empty()) object["restartPolicy"] = restart;
  return object;
}

json pod(json spec) { return {{"metadata", {{"name", "p"}, {"uid", "u"}}}, {"spec", std::move(spec)}}; }

void expect_requests(const json& object, double cpus, double mebibytes) {
  const absl::StatusOr<PodOnNode> parsed = parse_pod(object);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_NEAR(parsed->cpus, cpus, 1e-9) << object;
  EXPECT_NEAR(parsed->memory_bytes, mebibytes * 1024 * 1024, 1) << object;
}

TEST(Pod, RequestsAreCountedAsTheSchedulerDoes) {
  expect_requests(pod({{"containers", {container("500m", "1Gi"), container("1", "512Mi")}}}), 1.5, 1536);
  expect_requests(pod({{"containers", {{{"name", "none"}}}}}), 0, 0);
  expect_requests(pod({{"containers", {container("1", "1Gi")}}, {"initContainers", {container("4", "64Mi")}}}), 4,
                  1024);
  expect_requests(pod({{"containers", {container("1", "100Mi")}},
                       {"initContainers", {container("500m", "50Mi", "Always"), container("2", "10Mi")}}}),
                  2.5, 150);
  expect_requests(pod({{"containers", {container("1", "100Mi")}}, {"overhead", {{"cpu", "250m"}, {"memory", "20Mi"}}}}),
                  1.25, 120);
  expect_requests(pod({{"containers", {container("1", "100Mi")}}, {"resources", {{"requests", {{"cpu", "3"}}}}}}), 3,
                  100);
}

TEST(Pod, MalformedPodsAreRefused) {
  EXPECT_FALSE(parse_pod(pod({{"containers", {container("much", "1Gi")}}})).ok());
  EXPECT_FALSE(parse_pod({{"metadata", {{"name", "p"}}}}).ok());
}

TEST(Pods, OwnersRequestsAreThoseOfRunningPodsThatAreNoSummers) {
  json owner = pod({{"containers", {container("2", "1Gi")}}, {"hostNetwork", true}});
  json summer = pod({{"containers", {container("100m", "1Gi")}}});
  summer["metadata"]["labels"]["gleaner.dev/role"] = "summer";
  json done = pod({{"containers", {container("8", "1Gi")}}});
  done["status"]["phase"] = "Succeeded";
  const std::vector<PodOnNode> pods = {*parse_pod(owner), *parse_pod(summer), *parse_pod(done)};
  EXPECT_TRUE(pods[0].host_network);
  EXPECT_TRUE(pods[1].summer);
  EXPECT_TRUE(pods[2].finished);
  EXPECT_NEAR(owners_requests(pods).cpus, 2, 1e-9);
  EXPECT_NEAR(owners_requests(pods).memory_bytes, 1024.0 * 1024 * 1024, 1);
}

TEST(Node, HasAllocatableResourcesLabelAndSummers) {
  const json object = {{"metadata", {{"name", "n1"}, {"uid", "u"}, {"labels", {{"gleaner.dev/bandwidth", "25Gbit"}}}}},
                       {"status",
                        {{"allocatable", {{"cpu", "7500m"}, {"memory", "16Gi"}}},
                         {"capacity", {{"cpu", "8"}, {"gleaner.dev/summer", "4"}}}}}};
  const absl::StatusOr<NodeState> node = parse_node(object);
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->allocatable_cpus, 7.5);
  EXPECT_EQ(node->allocatable_memory_bytes, 16.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(node->summers_capacity, 4);
  EXPECT_EQ(node->bandwidth_label, "25Gbit");
  const absl::StatusOr<NodeState> fresh = parse_node({{"metadata", {{"name", "n1"}, {"uid", "u"}}}});
  ASSERT_TRUE(fresh.ok());
  EXPECT_EQ(fresh->summers_capacity, -1) << "-1: the node does not advertise the resource";
  EXPECT_EQ(fresh->allocatable_cpus, 0);
}

class ProfileTest : public testing::Test {
 protected:
  ProfileTest() {
    machine_.processors = {.cpus = 16, .memory_bytes = uint64_t{64} << 30, .numa_nodes = 2};
    machine_.nics = {{.name = "eth0", .default_route = true}, {.name = "eth1"}};
    estimate_.measured = true;
    estimate_.speed = {10e9, api::SpeedSource::kLabel, false, 10e9};
    estimate_.spare = {8, uint64_t{32} << 30, 5e9};
    speed_ = {10e9, api::SpeedSource::kLabel, "Label", "the label says so", false};
  }
  api::NodeProfileStatus status() const {
    return make_status(machine_, estimate_, speed_, "1.0", before_, absl::UnixEpoch());
  }
  const api::Condition& condition(const api::NodeProfileStatus& status, const char* type) const {
    return *api::find_condition(status.conditions, type);
  }

  discover::Machine machine_;
  spare::Estimate estimate_;
  probe::Speed speed_;
  std::vector<api::Condition> before_;
};

TEST_F(ProfileTest, SpeedIsThatOfTheDefaultRoutesNic) {
  const api::NodeProfileStatus made = status();
  EXPECT_EQ(made.bits_per_second, 10e9);
  EXPECT_EQ(made.nics[0].bits_per_second, 10e9);
  EXPECT_EQ(made.nics[0].speed_source, api::SpeedSource::kLabel);
  EXPECT_EQ(made.nics[1].bits_per_second, 0);
  EXPECT_EQ(made.numa_nodes, 2u);
}

TEST_F(ProfileTest, ConditionsStateWhetherTheSpeedIsKnown) {
  EXPECT_TRUE(condition(status(), "Ready").status);
  EXPECT_TRUE(condition(status(), "SpeedKnown").status);
  EXPECT_EQ(condition(status(), "SpeedKnown").reason, "Label");

  machine_.without_nvml = "no NVML";
  EXPECT_EQ(condition(status(), "Ready").reason, "WithoutNvml");
  EXPECT_TRUE(condition(status(), "Ready").status);
  machine_.without_nvml.clear();
  machine_.nvml_failures = {"GPU 1 is left out: GPU is lost", "GPU 3 has no UUID: Unknown Error"};
  EXPECT_EQ(condition(status(), "Ready").reason, "NvmlFailures");
  EXPECT_EQ(condition(status(), "Ready").message,
            "NVML fails in part: GPU 1 is left out: GPU is lost; GPU 3 has no UUID: Unknown Error");
  EXPECT_TRUE(condition(status(), "Ready").status);
  estimate_.measured = false;
  EXPECT_FALSE(condition(status(), "Ready").status);

  estimate_.speed.contradicted = true;
  EXPECT_FALSE(condition(status(), "SpeedKnown").status);
  EXPECT_EQ(condition(status(), "SpeedKnown").reason, "FasterThanClaimed");
  estimate_.speed = {};
  speed_ = probe::choose_speed({});
  EXPECT_FALSE(condition(status(), "SpeedKnown").status);
  EXPECT_EQ(condition(status(), "SpeedKnown").reason, "Unknown");
}

TEST_F(ProfileTest, NvmlReportTellsEachChangeOnce) {
  NvmlReport report;
  EXPECT_EQ(report.changed(machine_), std::nullopt) << "NVML works from the start";
  machine_.nvml_failures = {"GPU 1 is left out: GPU is lost"};
  EXPECT_EQ(report.changed(machine_), "NVML fails in part: GPU 1 is left out: GPU is lost");
  EXPECT_EQ(report.changed(machine_), std::nullopt);
  machine_.without_nvml = "no NVML";
  EXPECT_EQ(report.changed(machine_), "GPUs are found by their PCI class only; no NVML");
  EXPECT_EQ(report.changed(machine_), std::nullopt);
  machine_.without_nvml.clear(), machine_.nvml_failures.clear();
  EXPECT_EQ(report.changed(machine_), "") << "NVML has recovered";
  EXPECT_EQ(report.changed(machine_), std::nullopt);
}

TEST_F(ProfileTest, ConditionsKeepTheTimeOfTheirTransition) {
  before_ = status().conditions;
  const api::NodeProfileStatus later =
      make_status(machine_, estimate_, speed_, "1.0", before_, absl::UnixEpoch() + absl::Hours(1));
  EXPECT_EQ(condition(later, "Ready").last_transition, absl::UnixEpoch());
  estimate_.measured = false;
  const api::NodeProfileStatus changed =
      make_status(machine_, estimate_, speed_, "1.0", before_, absl::UnixEpoch() + absl::Hours(2));
  EXPECT_EQ(condition(changed, "Ready").last_transition, absl::UnixEpoch() + absl::Hours(2));
}

TEST_F(ProfileTest, OnlyLargeChangesAreNoticeable) {
  const api::NodeProfileStatus before = status();
  EXPECT_FALSE(differs_noticeably(before, status()));
  estimate_.spare.cpus = 9.5;               // of 16
  estimate_.spare.bits_per_second = 5.9e9;  // of 10
  estimate_.used_cpus = 4;
  estimate_.cpu_pressure = 50;
  EXPECT_FALSE(differs_noticeably(before, status()));
  estimate_.spare.cpus = 6.3;
  EXPECT_TRUE(differs_noticeably(before, status()));
  estimate_.spare = {8, uint64_t{32} << 30, 3.9e9};
  EXPECT_TRUE(differs_noticeably(before, status()));
  estimate_.spare = {8, uint64_t{20} << 30, 5e9};
  EXPECT_TRUE(differs_noticeably(before, status()));
}

TEST_F(ProfileTest, SmallChangesOfSmallSparesAreNoticeable) {
  estimate_.spare.cpus = 0.5;  // of 16
  const api::NodeProfileStatus before = status();
  estimate_.spare.cpus = 0.35;
  EXPECT_FALSE(differs_noticeably(before, status()));
  estimate_.spare.cpus = 0.2;
  EXPECT_TRUE(differs_noticeably(before, status()));
  EXPECT_TRUE(differs_noticeably(status(), before));
  estimate_.spare.cpus = 0.05;
  const api::NodeProfileStatus nothing = status();
  estimate_.spare.cpus = 0;
  EXPECT_FALSE(differs_noticeably(nothing, status())) << "the difference is noise";
}

TEST_F(ProfileTest, OnlyLargeChangesOfLatenciesAreNoticeable) {
  api::NodeProfileStatus before = status(), now = status();
  before.peers = {{.node = "far", .round_trip = absl::Microseconds(100)},
                  {.node = "near", .round_trip = absl::Microseconds(10)}};
  const auto noticeable = [&](int far, int near) {
    now.peers = {{.node = "near", .round_trip = absl::Microseconds(near), .lost_percent = 9},
                 {.node = "far", .round_trip = absl::Microseconds(far), .observed_time = absl::UnixEpoch()}};
    return differs_noticeably(before, now);
  };
  EXPECT_FALSE(noticeable(124, 14));
  EXPECT_TRUE(noticeable(126, 10));
  EXPECT_TRUE(noticeable(79, 10));
  EXPECT_FALSE(noticeable(100, 15)) << "5 us are noise";
  EXPECT_TRUE(noticeable(100, 16));
  now.peers.pop_back();
  EXPECT_TRUE(differs_noticeably(before, now));
  EXPECT_TRUE(differs_noticeably(now, before));
}

TEST_F(ProfileTest, OnlyLargeChangesOfBandwidthsAreNoticeable) {
  api::NodeProfileStatus before = status(), now = status();
  before.peer_bandwidths = {{.node = "peer", .bits_per_second = 1e9}};
  now.peer_bandwidths = {{.node = "peer", .bits_per_second = 1.05e9, .observed_time = absl::UnixEpoch()}};
  EXPECT_FALSE(differs_noticeably(before, now));
  now.peer_bandwidths[0].bits_per_second = 1.2e9;
  EXPECT_TRUE(differs_noticeably(before, now));
  EXPECT_TRUE(differs_noticeably(before, status())) << "the entry is gone";
}

TEST_F(ProfileTest, NewDevicesAreNoticeable) {
  const api::NodeProfileStatus before = status();
  machine_.nics[1].bits_per_second = 1e9;
  EXPECT_TRUE(differs_noticeably(before, status()));
  machine_.nics[1].bits_per_second = 0;
  machine_.gpus.push_back({.uuid = "g"});
  EXPECT_TRUE(differs_noticeably(before, status()));
  machine_.gpus.clear();
  speed_.reason = "ClaimAboveLink";
  EXPECT_TRUE(differs_noticeably(before, status()));
}

}  // namespace
}  // namespace gleaner::publish
