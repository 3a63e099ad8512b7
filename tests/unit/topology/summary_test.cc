// Tests the figures of summaries and their text, and the tiers and sides of topologies.
#include "common/topology/summary.h"

#include <gmock/gmock.h>

#include "common/topology/builders.h"
#include "common/topology/probes.h"
#include "common/topology/tiers.h"
#include "tests/unit/topology/value.h"

namespace gleaner::topology {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Summary summary_of(const Topology& topology) { return summarize(make_network(topology)); }

TEST(Summary, FarthestHosts) {
  const Topology tree = value(fat_tree(4, {.latency_seconds = 2e-6}));
  const Summary summary = summary_of(tree);
  ASSERT_TRUE(summary.farthest);
  EXPECT_EQ(summary.farthest->hops, 6u);
  EXPECT_EQ(summary.farthest->paths, 4u);
  EXPECT_DOUBLE_EQ(summary.farthest->latency_seconds, 12e-6);
  EXPECT_EQ(Paths(tree).hops(summary.farthest->from, summary.farthest->to), 6u);
  EXPECT_EQ(summary_of(value(star(2, {}))).farthest->hops, 2u) << "two hosts of the only switch";
  EXPECT_FALSE(summary_of(value(star(1, {}))).farthest);
}

TEST(Summary, Oversubscription) {
  const Topology slow = value(racks(2, 8, {.bits_per_second = 10e9, .uplink_bits_per_second = 20e9}));
  const Summary summary = summary_of(slow);
  ASSERT_TRUE(summary.oversubscription);
  EXPECT_EQ(slow.name(summary.oversubscription->node), "rack-0");
  EXPECT_EQ(summary.oversubscription->host_bits_per_second, 80e9);
  EXPECT_EQ(summary.oversubscription->ratio(), 4);
  EXPECT_THAT(to_table(slow, summary), HasSubstr("4 : 1 at rack-0"));
  // A BiGraph of N switches with N/2 hosts each is not oversubscribed (EFLOPS, section IV-B).
  EXPECT_EQ(summary_of(value(bigraph(4, 8, {}))).oversubscription->ratio(), 1);
  EXPECT_EQ(summary_of(value(bigraph(6, 8, {}))).oversubscription->ratio(), 1.5);
  EXPECT_EQ(summary_of(value(fat_tree(4, {}))).oversubscription->ratio(), 1);
  EXPECT_FALSE(summary_of(value(star(4, {}))).oversubscription);
}

TEST(Summary, Overhead) {
  const Topology made = value(Topology::make({{"a", {}, 4e-6}, {"b", {}, 9e-6}}, {}, {{0, 1, 1e9, 1e9, 0}}));
  EXPECT_THAT(to_table(made, summary_of(made)), HasSubstr("Overhead          4 us .. 9 us of a host's processor"));
  EXPECT_THAT(to_table(value(star(2, {})), summary_of(value(star(2, {})))), Not(HasSubstr("Overhead")));
}

TEST(Summary, HostsMaySendFasterThanTheyReceive) {
  const Topology made = value(
      Topology::make({{"a"}, {"b"}}, {{"s"}, {"t"}}, {{0, 2, 8e9, 1e9, 0}, {1, 3, 1e9, 1e9, 0}, {3, 2, 1e9, 2e9, 0}}));
  const auto worst = summary_of(made).oversubscription;
  ASSERT_TRUE(worst);
  EXPECT_EQ(worst->node, 2u);
  EXPECT_EQ(worst->ratio(), 4) << "8 Gbit/s come in, 2 Gbit/s go out";
}

TEST(Summary, ClassesByTierAndSpeed) {
  const Topology tree = value(fat_tree(4, {.bits_per_second = 10e9, .uplink_bits_per_second = 40e9}));
  const Summary summary = summary_of(tree);
  ASSERT_EQ(summary.classes.size(), 3u);
  for (uint32_t tier = 0; tier < 3; ++tier) {
    EXPECT_EQ(summary.classes[tier].lower, tier);
    EXPECT_EQ(summary.classes[tier].upper, tier + 1);
    EXPECT_EQ(summary.classes[tier].count, 16u);
    EXPECT_EQ(summary.classes[tier].up.least, tier == 0 ? 10e9 : 40e9);
  }
  const std::string text = to_table(tree, summary);
  EXPECT_THAT(text, HasSubstr("16 hosts, 20 switches, 48 links"));
  EXPECT_THAT(text, HasSubstr("4 shortest paths"));
  EXPECT_THAT(text, HasSubstr("host - tier 1       16  10 Gbit/s     1 us  host-0 - pod-0-edge-0"));
}

TEST(Summary, DirectionsOfALink) {
  const Topology made = value(Topology::make({{"a"}, {"b"}}, {{"s"}}, {{2, 0, 1e9, 3e9, 0}, {1, 2, 3e9, 1e9, 0}}));
  const Summary summary = summary_of(made);
  ASSERT_EQ(summary.classes.size(), 1u) << "both hosts send 3 Gbit/s and receive 1";
  EXPECT_THAT(to_table(made, summary), HasSubstr("3 Gbit/s up, 1 Gbit/s down"));
}

TEST(Summary, ManySpeedsAreOneClass) {
  Probes probes;
  for (int i = 0; i < 6; ++i) probes.names.push_back(std::string(1, static_cast<char>('a' + i)));
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 6; ++j) {
      probes.latency_seconds.push_back(i == j ? 0 : 1e-6 * (i + j));
      probes.bits_per_second.push_back(i == j ? 0 : 1e9 * (1 + i * j));
    }
  }
  const Topology made = value(topology_of(probes));
  const Summary summary = summary_of(made);
  ASSERT_FALSE(summary.classes.empty());
  const LinkClass& pairs = summary.classes.back();
  EXPECT_EQ(pairs.lower, 1u);
  EXPECT_EQ(pairs.upper, 1u);
  EXPECT_EQ(pairs.count, 15u);
  EXPECT_EQ(pairs.up.least, 1e9);
  EXPECT_EQ(pairs.up.most, 21e9);
  EXPECT_EQ(pairs.latency_seconds.most, 9e-6);
  EXPECT_THAT(to_table(made, summary), HasSubstr("1 Gbit/s .. 21 Gbit/s"));
}

TEST(Summary, OneHostHasNoDistances) {
  const Topology made = value(Topology::make({{"a"}}, {}, {}));
  EXPECT_EQ(to_table(made, summary_of(made)), "1 host, 0 switches, 0 links\n");
}

TEST(Tiers, CountLinksToTheNearestHost) {
  const Topology made = value(
      Topology::make({{"a"}, {"b"}}, {{"s"}, {"t"}, {"spare"}}, {{0, 2, 1, 1, 0}, {1, 2, 1, 1, 0}, {2, 3, 1, 1, 0}}));
  EXPECT_THAT(tiers(made), ElementsAre(0, 0, 1, 2, 3)) << "the spare switch is above all";
}

TEST(Sides, BiGraphHasTwo) {
  EXPECT_THAT(sides(value(bigraph(1, 4, {}))), ElementsAre(0, 0, 1, 1, 0, 0, 1, 1));
  EXPECT_THAT(sides(value(star(3, {}))), IsEmpty());
  EXPECT_THAT(sides(value(racks(2, 2, {}))), IsEmpty()) << "the core switch has no hosts";
  EXPECT_THAT(sides(value(Topology::make({{"a"}}, {}, {}))), IsEmpty());
  const Topology triangle = value(Topology::make(
      {{"a"}, {"b"}, {"c"}}, {{"s"}, {"t"}, {"u"}},
      {{0, 3, 1, 1, 0}, {1, 4, 1, 1, 0}, {2, 5, 1, 1, 0}, {3, 4, 1, 1, 0}, {4, 5, 1, 1, 0}, {5, 3, 1, 1, 0}}));
  EXPECT_THAT(sides(triangle), IsEmpty());
  const Topology both = value(Topology::make({{"a"}, {"b"}}, {{"s"}, {"t"}},
                                             {{0, 2, 1, 1, 0}, {0, 3, 1, 1, 0}, {1, 3, 1, 1, 0}, {2, 3, 1, 1, 0}}));
  EXPECT_THAT(sides(both), IsEmpty()) << "host a is at both sides";
}

}  // namespace
}  // namespace gleaner::topology
