#include "common/fabric/measured_uplinks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/fabric/cluster.h"
#include "tests/unit/fabric/measured.h"

namespace gleaner::fabric {
namespace {

using testing::ElementsAre;

// Three racks r0 to r2 of four nodes with links of 10 Gbit/s, of which r2 is in a zone of its own.
Fabric three_racks() {
  const MeasuredRacks racks(16, 4);
  std::vector<LabelledNode> nodes;
  for (size_t i = 0; i < 16; ++i) nodes.push_back(node(racks.names[i], i < 8 ? "a" : "b", "r" + std::to_string(i / 4)));
  return Fabric::of_labels(std::move(nodes), kLevels, {});
}

double uplink(const MeasuredRacks& racks, const std::string& name, absl::Time now = kNow) {
  const Fabric fabric = three_racks();
  const std::vector<double> all = measured_uplinks(fabric, racks.profiles, now);
  for (size_t group = 0; group < all.size(); ++group) {
    if (fabric.groups()[group].name == name) return all[group];
  }
  return -1;
}

TEST(MeasuredUplinks, SlowPathsTellTheUplinksOfTheGroupsThatTheyLeave) {
  MeasuredRacks racks(16, 4);
  racks.set_bandwidth(0, 1, 9.4e9);
  racks.set_bandwidth(0, 4, 9.3e9);  // from a/r0 to a/r1
  racks.set_bandwidth(0, 8, 2e9);    // from a/r0 to b/r2
  racks.set_bandwidth(9, 13, 4e9);   // from b/r2 to b/r3
  EXPECT_EQ(uplink(racks, "a"), 2e9);
  EXPECT_EQ(uplink(racks, "b"), 2e9);
  EXPECT_EQ(uplink(racks, "a/r0"), 0);  // as fast as the links of its nodes
  EXPECT_EQ(uplink(racks, "a/r1"), 0);
  EXPECT_EQ(uplink(racks, "b/r2"), 4e9);
  EXPECT_EQ(uplink(racks, "b/r3"), 4e9);
}

TEST(MeasuredUplinks, OneAgentAloneDoesNotTellTheUplink) {
  MeasuredRacks racks(16, 4);
  racks.set_bandwidth(0, 8, 2e9);
  racks.set_bandwidth(1, 9, 2.1e9);
  racks.set_bandwidth(2, 9, 500e9);  // more than its own link carries
  EXPECT_EQ(uplink(racks, "a"), 2.1e9);
}

TEST(MeasuredUplinks, ManyMeasurementsOfOneAgentCountAsOne) {
  for (const double lie : {1.0, 10e9}) {
    MeasuredRacks racks(16, 4);
    for (uint32_t i = 0; i < 3; ++i) {
      racks.set_bandwidth(i, 8 + i, 2e9);
      racks.set_bandwidth(i, (i + 1) % 3, 9.4e9);
    }
    for (uint32_t other = 0; other < 16; ++other) {
      if (other != 3) racks.set_bandwidth(3, other, lie);
    }
    EXPECT_EQ(uplink(racks, "a"), 2e9) << lie;
  }
}

TEST(MeasuredUplinks, NodesThatAreGoneTellNothing) {
  MeasuredRacks racks(17, 4);  // the last node is in no group
  racks.set_bandwidth(0, 8, 2e9);
  racks.set_bandwidth(0, 16, 9.4e9);
  racks.set_bandwidth(16, 0, 9.4e9);
  EXPECT_EQ(uplink(racks, "a"), 2e9);
}

TEST(MeasuredUplinks, OldOrNoMeasurementsTellNothing) {
  MeasuredRacks racks(16, 4);
  EXPECT_EQ(uplink(racks, "a"), 0);
  racks.set_bandwidth(0, 8, 2e9);
  EXPECT_EQ(uplink(racks, "a", kNow + absl::Hours(49)), 0);
}

TEST(MeasuredUplinks, StatedUplinksTakePrecedence) {
  Fabric fabric = small_cluster({{"rack", "r1", 5e9}});
  fabric.set_measured_uplinks(std::vector<double>{1e9, 2e9, 0, 0});
  EXPECT_EQ(fabric.groups()[0].uplink_source, api::UplinkSource::kProbes);
  EXPECT_EQ(fabric.groups()[0].uplink_bits_per_second, 1e9);
  EXPECT_EQ(fabric.groups()[1].uplink_bits_per_second, 5e9);
  EXPECT_EQ(fabric.groups()[2].uplink_source, api::UplinkSource::kAssumed);
}

}  // namespace
}  // namespace gleaner::fabric
