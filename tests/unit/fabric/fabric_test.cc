#include "common/fabric/fabric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/fabric/status.h"
#include "tests/unit/fabric/cluster.h"

namespace gleaner::fabric {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> names(const Fabric& fabric) {
  std::vector<std::string> names;
  for (const api::TopologyGroup& group : fabric.groups()) names.push_back(group.name);
  return names;
}

std::string group_of(const Fabric& fabric, const std::string& node) {
  const auto group = fabric.group_of(node);
  return group.has_value() ? fabric.groups()[*group].name : "";
}

TEST(Fabric, GroupsFollowLabels) {
  const Fabric fabric = small_cluster();
  EXPECT_THAT(names(fabric), ElementsAre("a", "a/r1", "a/r2", "b"));
  EXPECT_EQ(fabric.node_count(), 7u);
  EXPECT_EQ(group_of(fabric, "n2"), "a/r1");
  EXPECT_EQ(group_of(fabric, "n5"), "b");  // all nodes of zone b are in one rack
  EXPECT_EQ(group_of(fabric, "n6"), "");
  EXPECT_EQ(group_of(fabric, "unknown"), "");
  EXPECT_EQ(fabric.groups()[0].node_count, 4u);
  EXPECT_THAT(fabric.groups()[0].nodes, IsEmpty());
  EXPECT_THAT(fabric.groups()[1].nodes, ElementsAre("n1", "n2"));
  EXPECT_EQ(fabric.groups()[1].parent, "a");
  EXPECT_EQ(fabric.groups()[1].level, "rack");
}

TEST(Fabric, KnowsTheLevelsThatDivideNodes) {
  EXPECT_THAT(small_cluster().dividing_levels(),
              ElementsAre(placement::LabelLevel{"zone"}, placement::LabelLevel{"rack", "row"}));
  EXPECT_THAT(Fabric::of_labels({node("n1", "a", "")}, kLevels, {}).dividing_levels(), IsEmpty());
}

TEST(Fabric, SameRackNameInTwoZonesIsTwoGroups) {
  const Fabric fabric = Fabric::of_labels({node("n1", "a", "r1"), node("n2", "a", "r1"), node("n3", "a", "r2"),
                                           node("n4", "b", "r1"), node("n5", "b", "r1"), node("n6", "b", "r2")},
                                          kLevels, {});
  EXPECT_THAT(names(fabric), ElementsAre("a", "a/r1", "b", "b/r1"));
  EXPECT_EQ(group_of(fabric, "n3"), "a");  // alone in its rack
}

TEST(Fabric, NodesWithoutWiderLabelKeepTheirRack) {
  const Fabric fabric = Fabric::of_labels(
      {node("n1", "a", ""), node("n2", "a", ""), node("n3", "", "a"), node("n4", "", "a")}, kLevels, {});
  EXPECT_EQ(fabric.groups().size(), 2u);
  EXPECT_NE(fabric.groups()[0].name, fabric.groups()[1].name);  // the zone and the rack have one value
  EXPECT_NE(group_of(fabric, "n1"), group_of(fabric, "n3"));
}

TEST(Fabric, EqualOrNoLabelsMakeNoGroups) {
  EXPECT_THAT(names(Fabric::of_labels({}, kLevels, {})), IsEmpty());
  EXPECT_THAT(names(Fabric::of_labels({node("n1", "", ""), node("n2", "", "")}, kLevels, {})), IsEmpty());
  EXPECT_THAT(names(Fabric::of_labels({node("n1", "a", "r"), node("n2", "a", "r")}, kLevels, {})), IsEmpty());
  EXPECT_THAT(names(Fabric::of_labels({node("n1", "a", "r1"), node("n2", "a", "r2")}, kLevels, {})), IsEmpty());
}

TEST(Fabric, StatedUplinksTakeEffectByLevelAndGroup) {
  const Fabric fabric = small_cluster({{"row", "", 1e9}, {"rack", "r2", 2e9}, {"pod", "", 3e9}});
  EXPECT_EQ(fabric.groups()[1].uplink_bits_per_second, 1e9);  // "row" is another key of the level of racks
  EXPECT_EQ(fabric.groups()[1].uplink_source, api::UplinkSource::kStated);
  EXPECT_EQ(fabric.groups()[2].uplink_bits_per_second, 2e9);
  EXPECT_EQ(fabric.groups()[0].uplink_bits_per_second, 0);
  EXPECT_EQ(fabric.groups()[0].uplink_source, api::UplinkSource::kAssumed);
}

TEST(Fabric, StatusOfATopologyGivesTheSameFabric) {
  Fabric fabric = small_cluster({{"rack", "", 1e9}});
  fabric.set_latencies(std::vector<double>{40e-6, 11e-6, 13e-6, 17e-6}, 99e-6);
  const Fabric again = Fabric::of_status(status_of(fabric, {}, {}, {}, absl::UnixEpoch()));
  EXPECT_EQ(again.groups(), fabric.groups());
  EXPECT_EQ(again.node_count(), 7u);
  EXPECT_EQ(again.groups()[1].latency_seconds, 11e-6);
  EXPECT_EQ(again.core_latency_seconds(), 99e-6);
  for (const char* node : {"n1", "n3", "n5", "n6"}) EXPECT_EQ(again.group_of(node), fabric.group_of(node));
  EXPECT_EQ(again.parent_of(1), 0u);
  EXPECT_EQ(again.parent_of(3), std::nullopt);
}

TEST(Fabric, LongValuesKeepNamesApart) {
  std::vector<LabelledNode> nodes;
  const placement::LabelLevels levels = {{"l0"}, {"l1"}, {"l2"}, {"l3"}, {"l4"}, {"l5"}};
  for (int i = 0; i < 64; ++i) {
    LabelledNode each{"n" + std::to_string(i), {}};
    for (int level = 0; level < 6; ++level) each.path.push_back(std::string(62, 'x') + ((i >> level) % 2 ? "1" : "0"));
    nodes.push_back(each);
    each.name += "-twin";
    nodes.push_back(each);
  }
  std::vector<std::string> all = names(Fabric::of_labels(nodes, levels, {}));
  EXPECT_EQ(all.size(), 126u);
  for (const std::string& name : all) EXPECT_LE(name.size(), 256u);
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
}

}  // namespace
}  // namespace gleaner::fabric
