#include "common/fabric/near_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/unit/fabric/cluster.h"
#include "tests/unit/fabric/measured.h"

namespace gleaner::fabric {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Returns the nodes with these racks as labels; "" for nodes beyond the list.
std::vector<LabelledNode> labelled(const MeasuredRacks& racks, const std::vector<std::string>& labels = {}) {
  std::vector<LabelledNode> nodes;
  for (size_t i = 0; i < racks.names.size(); ++i) {
    nodes.push_back(node(racks.names[i], "", i < labels.size() ? labels[i] : ""));
  }
  return nodes;
}

NearNodes find(const MeasuredRacks& racks, const std::vector<std::string>& labels = {}, const NearNodes& before = {},
               absl::Time now = kNow) {
  return find_near_nodes(labelled(racks, labels), racks.profiles, before.group_of, now);
}

std::vector<uint32_t> sizes(const NearNodes& near) {
  std::map<std::string, uint32_t> count;
  for (const auto& [name, group] : near.group_of) ++count[group];
  std::vector<uint32_t> sizes;
  for (const auto& [group, size] : count) sizes.push_back(size);
  return sizes;
}

TEST(NearNodes, AreThoseOfARack) {
  const MeasuredRacks racks(12, 4);
  const NearNodes near = find(racks);
  EXPECT_EQ(near.measured, 12u);
  EXPECT_THAT(sizes(near), ElementsAre(4, 4, 4));
  EXPECT_EQ(near.group_of.at("n05"), "near-n04");
  EXPECT_THAT(near.unmeasured, IsEmpty());
  EXPECT_THAT(near.implausible, IsEmpty());
}

TEST(NearNodes, TwoRacksOfTwoAreFound) { EXPECT_THAT(sizes(find(MeasuredRacks(4, 2))), ElementsAre(2, 2)); }

TEST(NearNodes, OneSwitchHasNoGroups) { EXPECT_THAT(find(MeasuredRacks(12, 12)).group_of, IsEmpty()); }

TEST(NearNodes, LabelsDivideFirst) {
  const MeasuredRacks racks(16, 4);
  const std::vector<std::string> zones(8, "zone-a");
  const NearNodes near = find(racks, zones);
  EXPECT_THAT(sizes(near), ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(near.mislabelled, IsEmpty());
}

TEST(NearNodes, LabelsThatLeaveFewNodesTogetherEndTheirGroups) {
  const MeasuredRacks racks(6, 2);
  const NearNodes before = find(racks);
  EXPECT_THAT(sizes(before), ElementsAre(2, 2, 2));
  EXPECT_THAT(find(racks, {"r1", "r1", "r1", "r2", "r2", "r2"}, before).group_of, IsEmpty());
}

TEST(NearNodes, GroupsStayWhileMeasurementsAreMissing) {
  MeasuredRacks racks(8, 4);
  const NearNodes before = find(racks);
  for (uint32_t from = 0; from < 8; ++from) {
    for (uint32_t to = 0; to < 8; ++to) {
      if (from != to && (from + to) % 4 != 0) racks.forget(from, to);
    }
  }
  EXPECT_EQ(find(racks, {}, before).group_of, before.group_of);
  EXPECT_THAT(find(racks).group_of, IsEmpty());
}

TEST(NearNodes, ANodeWithFewLatenciesDoesNotHoldUpOthers) {
  MeasuredRacks racks(9, 4);  // n08 is new, or one agent claims to know it
  for (uint32_t other = 0; other < 9; ++other) {
    racks.forget(8, other);
    if (other > 0) racks.forget(other, 8);
  }
  EXPECT_THAT(sizes(find(racks)), ElementsAre(4, 4));
  EXPECT_EQ(find(racks, {}, {.group_of = {{"n08", "near-n04"}}}).group_of.at("n08"), "near-n04");
}

TEST(NearNodes, StatedLatenciesToNodesWithoutAnAgentDoNotCount) {
  MeasuredRacks racks(72, 4);
  for (uint32_t silent = 8; silent < 72; ++silent) {
    racks.profiles.erase(racks.names[silent]);
    for (uint32_t from = 1; from < 8; ++from) racks.forget(from, silent);  // so the agent of n00 alone states one
  }
  const LatencyPairs latencies = latency_pairs(racks.names, racks.profiles, kNow);
  EXPECT_EQ(latencies.measured.size(), 8u);
  EXPECT_TRUE(latencies.is_full());
}

TEST(NearNodes, AGroupKeepsItsNameWhileNodesComeAndGo) {
  const MeasuredRacks racks(12, 4);
  const NearNodes all = find(racks);
  std::vector<LabelledNode> nodes = labelled(racks);
  nodes.erase(nodes.begin() + 4);
  const NearNodes without = find_near_nodes(nodes, racks.profiles, all.group_of, kNow);
  EXPECT_EQ(without.group_of.at("n05"), "near-n04");
  EXPECT_EQ(find(racks, {}, without).group_of, all.group_of);
  // A node that has moved does not take the name of its group with it.
  const NearNodes moved{.group_of = {{"n04", "near-n08"}, {"n08", "near-n08"}, {"n00", "near-n00"}}};
  EXPECT_EQ(find(racks, {}, moved).group_of, all.group_of);
}

TEST(NearNodes, OldMeasurementsDoNotCount) {
  EXPECT_EQ(find(MeasuredRacks(8, 4), {}, {}, kNow + absl::Hours(49)).measured, 0u);
  EXPECT_EQ(find(MeasuredRacks(8, 4), {}, {}, kNow - absl::Hours(49)).measured, 0u) << "nor those from the future";
}

TEST(NearNodes, ANodeThatAnswersNobodyIsInNoGroup) {
  MeasuredRacks racks(9, 3);
  for (uint32_t other = 0; other < 9; ++other) {
    racks.forget(4, other);
    racks.forget(other, 4);
  }
  const NearNodes near = find(racks);
  EXPECT_THAT(near.unmeasured, ElementsAre("n04"));
  EXPECT_THAT(sizes(near), ElementsAre(3, 2, 3));
}

TEST(NearNodes, PartsThatDoNotReachEachOtherHaveGroups) {
  MeasuredRacks racks(16, 4);
  for (uint32_t a = 0; a < 8; ++a) {
    for (uint32_t b = 8; b < 16; ++b) {
      racks.forget(a, b);
      racks.forget(b, a);
    }
  }
  // Nothing says how far the parts are from each other, and within each part the racks show.
  EXPECT_THAT(sizes(find(racks)), ElementsAre(4, 4, 4, 4));
}

TEST(NearNodes, AnAgentThatLiesMovesNoNodes) {
  for (const double factor : {0.1, 10.0}) {
    MeasuredRacks racks(12, 4);
    for (uint32_t other = 0; other < 12; ++other) {
      if (other != 5) racks.set(5, other, 60 * factor);
    }
    const NearNodes near = find(racks);
    EXPECT_THAT(near.implausible, ElementsAre("n05")) << factor;
    EXPECT_THAT(sizes(near), ElementsAre(4, 4, 4)) << factor;
  }
}

TEST(NearNodes, AnAgentThatFalsifiesItsAnswersMovesNoOtherNodes) {
  MeasuredRacks racks(12, 4);
  for (uint32_t other = 0; other < 12; ++other) {
    if (other == 5) continue;
    racks.set(5, other, 2);
    racks.set(other, 5, 2);
  }
  const NearNodes near = find(racks);
  EXPECT_THAT(near.implausible, ElementsAre("n05"));
  EXPECT_THAT(sizes(near), ElementsAre(4, 3, 4));
  EXPECT_FALSE(near.group_of.contains("n05"));
}

TEST(NearNodes, ANodeWithALabelOfAnotherRackIsNamed) {
  const MeasuredRacks racks(12, 4);
  const NearNodes near =
      find(racks, {"r1", "r1", "r1", "r2", "r2", "r2", "r2", "r2", "r3", "r3", "r3", "r3"});  // n03 is in rack r1
  EXPECT_THAT(near.mislabelled, ElementsAre("n03"));
}

TEST(NearNodes, GroupsStayWhileItIsNotSureWhichAreRight) {
  MeasuredRacks racks(6, 3);
  ranks::Random random(4);
  for (uint32_t a = 0; a < 6; ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      const double both = (a / 3 == b / 3 ? 40 : 60) * std::exp(0.3 * random.normal());
      racks.set(a, b, both);
      racks.set(b, a, both);
    }
  }
  const NearNodes before{.group_of = {{"n00", "near-n00"}, {"n01", "near-n00"}}};
  const NearNodes near = find(racks, {}, before);
  EXPECT_THAT(near.unsure, ElementsAre("n00", "n01", "n02", "n03", "n04", "n05"));
  EXPECT_EQ(near.group_of, before.group_of);
}

}  // namespace
}  // namespace gleaner::fabric
