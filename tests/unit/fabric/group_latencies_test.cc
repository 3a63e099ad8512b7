#include "common/fabric/group_latencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/fabric/cluster.h"
#include "tests/unit/fabric/measured.h"

namespace gleaner::fabric {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

// Twelve nodes in racks of four, which are the groups, and then nodes in no group. Latencies are 20 us within racks and
// 40 us across them, less or more 5 %.
class GroupLatenciesTest : public ::testing::Test {
 protected:
  GroupLatenciesTest() : racks_(14, 4) {
    std::vector<LabelledNode> nodes;
    for (uint32_t i = 0; i < 14; ++i)
      nodes.push_back(node(racks_.names[i], "", i < 12 ? "r" + std::to_string(i / 4) : ""));
    fabric_ = Fabric::of_labels(std::move(nodes), kLevels, {});
  }
  GroupLatencies found(absl::Time now = kNow) const {
    return group_latencies(fabric_, racks_.profiles, implausible_, now);
  }
  // Lets an agent state a round trip to all nodes.
  void lie(uint32_t from, double microseconds) {
    for (uint32_t to = 0; to < 14; ++to) {
      if (to != from) racks_.set(from, to, microseconds);
    }
  }
  void forget_all(uint32_t from, uint32_t first, uint32_t end) {
    for (uint32_t to = first; to < end; ++to) racks_.forget(from, to);
  }
  MeasuredRacks racks_;
  Fabric fabric_;
  std::vector<std::string> implausible_;
};

auto about(double seconds) { return DoubleNear(seconds, 0.05 * seconds); }

TEST_F(GroupLatenciesTest, AreTheUsualOnesOfEachGroupAndAcross) {
  EXPECT_THAT(found().of_groups, ElementsAre(about(20e-6), about(20e-6), about(20e-6)));
  EXPECT_THAT(found().core, about(40e-6));
}

TEST(GroupLatencies, BelongToTheSmallestCommonGroup) {
  MeasuredRacks racks(12, 4);
  for (uint32_t far = 8; far < 12; ++far) {
    for (uint32_t near = 0; near < 8; ++near) {
      racks.set(far, near, 200);
      racks.set(near, far, 200);
    }
  }
  std::vector<LabelledNode> nodes;
  for (uint32_t i = 0; i < 12; ++i)
    nodes.push_back(node(racks.names[i], i < 8 ? "a" : "b", "r" + std::to_string(i / 4)));
  const Fabric fabric = Fabric::of_labels(std::move(nodes), kLevels, {});  // a, a/r0, a/r1, b
  const GroupLatencies latencies = group_latencies(fabric, racks.profiles, {}, kNow);
  EXPECT_THAT(latencies.of_groups, ElementsAre(about(40e-6), about(20e-6), about(20e-6), about(20e-6)));
  EXPECT_EQ(latencies.core, 100e-6);
}

TEST_F(GroupLatenciesTest, AnAgentCountsOnceAndOneThatLiesDoesNotDecide) {
  // Agent 0 alone has many measurements in its rack; agents 1 and 2 have one each.
  lie(0, 4000);
  for (const uint32_t from : {1, 2, 3}) forget_all(from, 0, 4);
  racks_.set(1, 2, 40);
  racks_.set(2, 1, 42);
  EXPECT_EQ(found().of_groups[0], 21e-6);
}

TEST_F(GroupLatenciesTest, ImplausibleAgentsDoNotCount) {
  lie(0, 4000);
  for (const uint32_t from : {1, 2, 3}) forget_all(from, 0, 4);
  racks_.set(1, 2, 40);
  EXPECT_EQ(found().of_groups[0], 2e-3) << "of two agents the slower one decides";
  implausible_ = {racks_.names[0]};
  EXPECT_EQ(found().of_groups[0], 20e-6);
}

TEST_F(GroupLatenciesTest, AreUnknownWithoutMeasurementsThatCount) {
  EXPECT_THAT(found(kNow + absl::Hours(49)).of_groups, ElementsAre(0, 0, 0));
  EXPECT_EQ(found(kNow + absl::Hours(49)).core, 0);
  for (uint32_t from = 0; from < 3; ++from) forget_all(from, 0, 3);
  racks_.profiles.erase(racks_.names[3]);
  EXPECT_EQ(found().of_groups[0], 0) << "node 3 has no agent any more";
}

TEST(SettledLatency, ChangesByMoreThanAQuarter) {
  EXPECT_EQ(settled_latency(0, 21.437e-6), 21e-6);
  EXPECT_EQ(settled_latency(0, 99.7e-6), 100e-6);
  EXPECT_EQ(settled_latency(0, 0.6e-9), 1e-9);
  EXPECT_EQ(settled_latency(20e-6, 24.9e-6), 20e-6);
  EXPECT_EQ(settled_latency(20e-6, 16.1e-6), 20e-6);
  EXPECT_EQ(settled_latency(20e-6, 25.4e-6), 25e-6);
  EXPECT_EQ(settled_latency(20e-6, 15.9e-6), 16e-6);
  EXPECT_EQ(settled_latency(20e-6, 0), 0);
}

}  // namespace
}  // namespace gleaner::fabric
