// Tests of properties that only one kind of object has: sentinels, derived fields, and values that JSON can't
// represent.
#include <gtest/gtest.h>

#include <limits>

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

}  // namespace
}  // namespace gleaner::api
