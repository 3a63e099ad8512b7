// Tests the counts, places, bandwidths, distances and numbers of paths of regular topologies, and every error.
#include "common/topology/builders.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "common/topology/paths.h"
#include "tests/unit/topology/errors.h"
#include "tests/unit/topology/value.h"

namespace gleaner::topology {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

uint32_t diameter(const Topology& topology) {
  const Paths paths(topology);
  uint32_t result = 0;
  for (uint32_t a = 0; a < topology.host_count(); ++a) {
    for (uint32_t b = 0; b < topology.host_count(); ++b) result = std::max(result, paths.hops(a, b));
  }
  return result;
}

// Returns the bandwidths of the links that join two switches.
std::set<double> uplinks(const Topology& topology) {
  std::set<double> result;
  for (const Link& link : topology.links()) {
    EXPECT_EQ(link.bits_per_second, link.back_bits_per_second);
    if (!topology.is_host(link.a) && !topology.is_host(link.b)) result.insert(link.bits_per_second);
  }
  return result;
}

TEST(Star, OneSwitch) {
  const Topology made = value(star(5, {.bits_per_second = 25e9, .latency_seconds = 2e-6}));
  EXPECT_EQ(made.host_count(), 5u);
  EXPECT_EQ(made.switches().size(), 1u);
  ASSERT_EQ(made.links().size(), 5u);
  EXPECT_EQ(made.links()[4].bits_per_second, 25e9);
  EXPECT_EQ(made.links()[4].latency_seconds, 2e-6);
  EXPECT_EQ(made.hosts()[3].name, "host-3");
  EXPECT_THAT(made.hosts()[3].place, ElementsAre(3));
  EXPECT_EQ(diameter(made), 2u);
  EXPECT_EQ(value(star(1, {})).host_count(), 1u);
}

TEST(Racks, OneUplinkForEachRack) {
  const Topology made = value(racks(3, 4, {.bits_per_second = 10e9}));
  EXPECT_EQ(made.host_count(), 12u);
  EXPECT_EQ(made.switches().size(), 4u);
  EXPECT_EQ(made.links().size(), 15u);
  EXPECT_THAT(uplinks(made), ElementsAre(40e9)) << "the uplink carries all hosts of its rack";
  EXPECT_THAT(uplinks(value(racks(3, 4, {.uplink_bits_per_second = 7e9}))), ElementsAre(7e9));
  EXPECT_THAT(made.hosts()[7].place, ElementsAre(1, 3));
  EXPECT_EQ(diameter(made), 4u);
  const Paths paths(made);
  EXPECT_EQ(paths.hops(0, 3), 2u);
  EXPECT_EQ(paths.count(0, 11), 1u);
}

class FatTree : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Ports, FatTree, testing::Values(2, 4, 6, 8));

// k³/4 hosts, 5k²/4 switches; k³/4 links between two tiers; (k/2)² paths between pods, k/2 inside a pod.
TEST_P(FatTree, CountsDistancesAndPaths) {
  const uint32_t k = GetParam(), half = k / 2;
  const Topology made = value(fat_tree(k, {}));
  EXPECT_EQ(made.host_count(), k * k * k / 4);
  EXPECT_EQ(made.switches().size(), 5 * k * k / 4);
  EXPECT_EQ(made.links().size(), 3 * k * k * k / 4);
  EXPECT_THAT(uplinks(made), ElementsAre(100e9));
  for (uint32_t node = made.host_count(); node < made.node_count(); ++node) {
    EXPECT_EQ(made.neighbours(node).size(), k) << made.name(node);
  }
  const Paths paths(made);
  for (uint32_t a = 0; a < made.host_count(); ++a) {
    for (uint32_t b = 0; b < made.host_count(); ++b) {
      if (a == b) continue;
      const auto& one = made.hosts()[a].place;
      const auto& two = made.hosts()[b].place;
      const bool same_pod = one[0] == two[0], same_edge = same_pod && one[1] == two[1];
      ASSERT_EQ(paths.hops(a, b), same_edge ? 2u : same_pod ? 4u : 6u) << a << " " << b;
      ASSERT_EQ(paths.count(a, b), same_edge ? 1u : same_pod ? half : half * half) << a << " " << b;
    }
  }
}

// EFLOPS, section IV-B: N switches have N²/4 links between the sides and M·N hosts; the path between two hosts of
// different sides is unique.
TEST(BiGraph, CountsDistancesAndPaths) {
  for (const auto& [m, n] : {std::pair{4u, 16u}, {1u, 2u}, {3u, 4u}, {2u, 8u}}) {
    const Topology made = value(bigraph(m, n, {.bits_per_second = 50e9}));
    EXPECT_EQ(made.host_count(), m * n);
    EXPECT_EQ(made.switches().size(), n);
    EXPECT_EQ(made.links().size(), n * n / 4 + m * n);
    EXPECT_THAT(uplinks(made), ElementsAre(50e9));
    const Paths paths(made);
    for (uint32_t a = 0; a < made.host_count(); ++a) {
      for (uint32_t b = 0; b < made.host_count(); ++b) {
        if (a == b) continue;
        const auto& one = made.hosts()[a].place;
        const auto& two = made.hosts()[b].place;
        const bool same_side = one[0] == two[0], same_switch = same_side && one[1] == two[1];
        ASSERT_EQ(paths.hops(a, b), same_switch ? 2u : same_side ? 4u : 3u) << a << " " << b;
        ASSERT_EQ(paths.count(a, b), same_side && !same_switch ? n / 2 : 1u) << a << " " << b;
        ASSERT_EQ(paths.is_unique(a, b), paths.count(a, b) == 1);
      }
    }
  }
}

// With M <= N/2 there are at least as many links between the sides as pairs of hosts (EFLOPS, section IV-B).
TEST(BiGraph, LinksForEachPairOfHosts) {
  for (const auto& [m, n] : {std::pair{4u, 8u}, {4u, 16u}, {8u, 16u}}) {
    const Topology made = value(bigraph(m, n, {}));
    EXPECT_GE(made.links().size() - made.host_count(), made.host_count() / 2);
  }
}

TEST(Builders, LargestFatTree) { EXPECT_EQ(value(fat_tree(64, {})).host_count(), kMaxHosts); }

TEST(Builders, RejectCounts) {
  EXPECT_THAT(error_of(star(0, {})), HasSubstr("the number of hosts is 0; give 1 or more"));
  EXPECT_THAT(error_of(star(kMaxHosts + 1, {})), HasSubstr("65537 hosts; at most 65536"));
  EXPECT_THAT(error_of(racks(0, 4, {})), HasSubstr("the number of racks is 0"));
  EXPECT_THAT(error_of(racks(4, 0, {})), HasSubstr("hosts in a rack is 0"));
  EXPECT_THAT(error_of(racks(1 << 31, 1 << 31, {})), HasSubstr("at most 65536"));
  EXPECT_THAT(error_of(bigraph(0, 4, {})), HasSubstr("hosts at a switch is 0"));
  EXPECT_THAT(error_of(bigraph(2, 3, {})), HasSubstr("no two equal sides"));
  EXPECT_THAT(error_of(bigraph(2, 0, {})), HasSubstr("no two equal sides"));
  EXPECT_THAT(error_of(bigraph(1 << 16, 1 << 16, {})), HasSubstr("at most 65536"));
  EXPECT_THAT(error_of(bigraph(1, 1 << 16, {})), HasSubstr("more links than"));
  for (const uint32_t k : {0u, 1u, 3u, 66u, 1u << 22, 4294967294u}) {  // (2²²)³ is 0 in 64 bits
    EXPECT_THAT(error_of(fat_tree(k, {})), HasSubstr("an even number from 2 to 64")) << k;
  }
}

TEST(Builders, RejectSpeeds) {
  for (const double bad : {0., -1., kInfinity, std::nan("")}) {
    EXPECT_THAT(error_of(star(2, {.bits_per_second = bad})), HasSubstr("the bandwidth in bits per second")) << bad;
  }
  for (const double bad : {-1., kInfinity, std::nan("")}) {
    EXPECT_THAT(error_of(racks(2, 2, {.uplink_bits_per_second = bad})), HasSubstr("the uplinks' bandwidth")) << bad;
    EXPECT_THAT(error_of(fat_tree(2, {.latency_seconds = bad})), HasSubstr("the latency in seconds")) << bad;
    EXPECT_THAT(error_of(bigraph(2, 2, {.latency_seconds = bad})), HasSubstr("the latency in seconds")) << bad;
    EXPECT_THAT(error_of(star(2, {.overhead_seconds = bad})), HasSubstr("the overhead in seconds")) << bad;
  }
}

}  // namespace
}  // namespace gleaner::topology
