// Tests of properties that only one kind of object has: sentinels, derived fields, and values that JSON can't
// represent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/unit/api/samples.h"

namespace gleaner::api {
namespace {

using nlohmann::json;

TEST(RoundTripTest, EveryFieldOfAJob) {
  const auto again = parse_training_job(to_json(filled_job()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, filled_job());
}

TEST(RoundTripTest, EveryFieldOfAProfile) {
  const auto again = parse_node_profile(to_json(filled_profile()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, filled_profile());
}

TEST(RoundTripTest, EveryFieldOfAPlan) {
  const auto again = parse_reduction_plan(to_json(filled_plan()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, filled_plan());
}

TEST(RoundTripTest, EveryFieldOfATopology) {
  const auto again = parse_topology(to_json(filled_topology()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, filled_topology());
}

TEST(NodeProfileTest, UnknownValuesAreAbsent) {
  NodeProfile profile;
  profile.status.nics.resize(1);
  profile.status.nics[0].name = "eth0";
  profile.status.gpus.resize(1);
  profile.status.gpus[0].uuid = "GPU-1";
  profile.status.cpu_pressure = -1;
  const json status = to_json(profile)["status"];
  EXPECT_FALSE(status.contains("observedTime"));
  EXPECT_FALSE(status.contains("cpuPressure"));
  EXPECT_FALSE(status["nics"][0].contains("numaNode"));
  EXPECT_FALSE(status["nics"][0].contains("pciAddress"));
  EXPECT_FALSE(status["gpus"][0].contains("numaNode"));
  EXPECT_EQ(status["speed"], "unknown");
  const auto again = parse_node_profile(to_json(profile));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, profile);
}

TEST(NodeProfileTest, WritesReadableSpeedsAndCounts) {
  const json status = to_json(filled_profile().status);
  EXPECT_EQ(status["speed"], "24 Gbit/s");
  EXPECT_EQ(status["spare"]["bandwidth"], "21.3 Gbit/s");
  EXPECT_EQ(status["spare"]["cpus"], "12250m");
  EXPECT_EQ(status["nicCount"], 1);
  EXPECT_EQ(status["gpuCount"], 1);
}

TEST(ReductionPlanTest, MalformedNumbersAreZero) {
  ReductionPlan plan;
  plan.status.efficiency = std::numeric_limits<double>::quiet_NaN();
  plan.status.goodput_bytes_per_second = std::numeric_limits<double>::infinity();
  plan.spec.bound_seconds = -1;
  const json object = to_json(plan);
  EXPECT_EQ(object["status"]["efficiency"], "0");
  EXPECT_EQ(object["status"]["goodputBytesPerSecond"], std::numeric_limits<int64_t>::max());
  EXPECT_EQ(object["spec"]["boundMicroseconds"], 0);
  EXPECT_FALSE(object["spec"].contains("bound"));
}

TEST(ReductionPlanTest, WritesAReadableBound) {
  const json spec = to_json(filled_plan())["spec"];
  EXPECT_EQ(spec["bound"], "59.6 ms");
  EXPECT_EQ(spec["boundMicroseconds"], 59600);
  EXPECT_EQ(spec["memberCount"], 1);
}

TEST(TopologyTest, UnknownUplinksLatenciesAndParentsAreAbsent) {
  Topology topology = filled_topology();
  topology.uplinks.front().group.clear();
  topology.status.groups = {{.name = "zone-a", .level = "topology.kubernetes.io/zone", .node_count = 40}};
  topology.status.latency_seconds = 0;
  const json object = to_json(topology);
  EXPECT_FALSE(object["spec"]["uplinks"][0].contains("group"));
  EXPECT_FALSE(object["status"].contains("latencyNanoseconds"));
  const json& zone = object["status"]["groups"][0];
  for (const char* absent : {"parent", "nodes", "uplinkBitsPerSecond", "uplink", "latencyNanoseconds", "latency"}) {
    EXPECT_FALSE(zone.contains(absent));
  }
  EXPECT_EQ(zone["uplinkSource"], "Assumed");
  EXPECT_EQ(*parse_topology(object), topology);
}

TEST(TopologyTest, WritesReadableUplinksLatenciesAndCounts) {
  const json object = to_json(filled_topology());
  EXPECT_EQ(object["spec"]["uplinks"][0]["bandwidth"], "100Gbit");
  EXPECT_EQ(object["status"]["groups"][0]["uplink"], "400 Gbit/s");
  EXPECT_EQ(object["status"]["groups"][0]["latency"], "21 us");
  EXPECT_EQ(object["status"]["groups"][0]["latencyNanoseconds"], 21000);
  EXPECT_EQ(object["status"]["latencyNanoseconds"], 43000);
  EXPECT_EQ(object["status"]["groupCount"], 1);
}

// etcd takes objects of up to 1.5 MiB.
TEST(TopologyTest, TwoThousandNodesFitIntoAnObject) {
  Topology topology = filled_topology();
  const TopologyGroup rack = topology.status.groups.front();
  topology.status.groups.assign(125, rack);
  for (size_t i = 0; i < 125; ++i) {
    topology.status.groups[i].name = absl::StrCat("eu-central-1/eu-central-1a/rack-", i);
    topology.status.groups[i].nodes.clear();
    for (size_t j = 0; j < 16; ++j) {
      topology.status.groups[i].nodes.push_back(absl::StrCat("ip-10-1-", i, "-", j, ".eu-central-1.compute.internal"));
    }
  }
  EXPECT_LT(to_json(topology).dump().size(), 256U << 10);
}

TEST(RankMapTest, AMapWithoutTimesAndGroupsStaysSo) {
  TrainingJob job = filled_job();
  job.status.communication.rank_map = RankMap{.attempt = 3, .order = RankOrder::kIdentity, .message = "one worker"};
  EXPECT_EQ(to_json(job)["status"]["rankMap"],
            (json{{"attempt", 3}, {"order", "Identity"}, {"message", "one worker"}}));
  EXPECT_EQ(*parse_training_job(to_json(job)), job);
  EXPECT_EQ(job.status.communication.rank_map->index_of(7), 7U);
  EXPECT_EQ(filled_job().status.communication.rank_map->index_of(0), 2U);
}

TEST(RankMapTest, WorkersMustBeAnOrder) {
  for (const json& workers : {json::array({0, 0}), json::array({1}), json::array({0, 2, 3})}) {
    json object = to_json(filled_job());
    object["status"]["rankMap"]["workers"] = workers;
    EXPECT_THAT(std::string(parse_training_job(object).status().message()),
                testing::StartsWith("status.rankMap.workers: expected each index from 0 to the number of workers"));
  }
}

TEST(RankMapTest, IndexesOfGroupsMustAscend) {
  json object = to_json(filled_plan());
  object["spec"]["rankMap"]["groups"][1]["workers"] = "3,2";
  EXPECT_THAT(std::string(parse_reduction_plan(object).status().message()),
              testing::StartsWith("spec.rankMap.groups[1].workers: expected ascending indexes below 4096"));
}

}  // namespace
}  // namespace gleaner::api
