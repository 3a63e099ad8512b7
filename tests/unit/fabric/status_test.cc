#include "common/fabric/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/fabric/cluster.h"

namespace gleaner::fabric {
namespace {

using testing::HasSubstr;

api::TopologyStatus status(const std::vector<api::StatedUplink>& uplinks) {
  return status_of(small_cluster(uplinks), {}, uplinks, {}, absl::UnixEpoch());
}

const api::Condition& condition(const api::TopologyStatus& status, const char* type) {
  return *api::find_condition(status.conditions, type);
}

TEST(Status, SaysWhatIsAssumed) {
  const api::TopologyStatus some = status({{"rack", "", 1e9}});
  EXPECT_TRUE(condition(some, "Ready").status);
  EXPECT_THAT(condition(some, "Ready").message, HasSubstr("4 groups of 7 nodes"));
  EXPECT_EQ(condition(some, "UplinksKnown").reason, "Assumed");
  EXPECT_THAT(condition(some, "UplinksKnown").message, HasSubstr("uplinks of a, b are"));
  EXPECT_TRUE(condition(status({{"rack", "", 1e9}, {"zone", "", 1e9}}), "UplinksKnown").status);
}

TEST(Status, UplinkOfNoGroupIsNamed) {
  const api::TopologyStatus wrong = status({{"rack", "r9", 1e9}, {"pod", "", 1e9}});
  EXPECT_EQ(condition(wrong, "UplinksKnown").reason, "NoSuchGroup");
  EXPECT_THAT(condition(wrong, "UplinksKnown").message, HasSubstr("rack=r9, pod"));
}

TEST(Status, NoLabelsMeanOneSwitch) {
  const Fabric fabric = Fabric::of_labels({node("n1", "", ""), node("n2", "", "")}, kLevels, {});
  const api::TopologyStatus status = status_of(fabric, {}, {}, {}, absl::UnixEpoch());
  EXPECT_EQ(condition(status, "Ready").reason, "NoLabels");
  EXPECT_EQ(status.node_count, 2u);
  EXPECT_TRUE(condition(status, "UplinksKnown").status);
}

TEST(Status, SaysHowLatenciesCount) {
  const NearNodes near{.measured = 7, .unmeasured = {"n6"}, .implausible = {"n1"}, .mislabelled = {"n2"}};
  const api::TopologyStatus status = status_of(small_cluster(), near, {}, {}, absl::UnixEpoch());
  EXPECT_THAT(condition(status, "NodesMeasured").message, HasSubstr("no latency to n6 is known"));
  EXPECT_EQ(condition(status, "LatenciesAgree").reason, "Implausible");
  EXPECT_THAT(condition(status, "LatenciesAgree").message, HasSubstr("agents of n1 "));
  EXPECT_THAT(condition(status, "LatenciesAgree").message, HasSubstr("latencies of n2 are those"));
  // Both conditions are gone when nothing is measured any more.
  const api::TopologyStatus later = status_of(small_cluster(), {}, {}, status.conditions, absl::UnixEpoch());
  EXPECT_EQ(api::find_condition(later.conditions, "NodesMeasured"), nullptr);
  EXPECT_EQ(api::find_condition(later.conditions, "LatenciesAgree"), nullptr);
}

TEST(Status, GroupsByLatenciesAreToldApart) {
  const Fabric fabric = Fabric::of_labels(
      {{"n1", {"", "", ""}, "near-n1"}, {"n2", {"", "", ""}, "near-n1"}, {"n3", {"", "", ""}, ""}}, kLevels, {});
  ASSERT_EQ(fabric.groups().size(), 1u);
  EXPECT_EQ(fabric.groups()[0].level, kProbedLevel);
  EXPECT_TRUE(fabric.dividing_levels().empty());
  EXPECT_EQ(condition(status_of(fabric, {.measured = 3}, {}, {}, absl::UnixEpoch()), "Ready").reason, "Probes");
}

TEST(Status, EqualFabricsHaveEqualStatus) {
  const api::TopologyStatus first = status({});
  EXPECT_EQ(status_of(small_cluster(), {}, {}, first.conditions, absl::UnixEpoch() + absl::Hours(1)), first);
}

}  // namespace
}  // namespace gleaner::fabric
