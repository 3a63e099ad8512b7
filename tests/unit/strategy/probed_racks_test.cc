// Tests the groups that probes suggest, and what a job makes of them.
#include "common/strategy/probed_racks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/ranks/random.h"
#include "common/strategy/candidates.h"
#include "common/strategy/rack_times.h"
#include "common/strategy/rank_maps.h"
#include "tests/unit/strategy/probed_hosts.h"

namespace gleaner::strategy {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Returns the number of racks in each group.
std::vector<size_t> racks_in(const collective::Groups& groups, const std::vector<uint32_t>& rack_of) {
  std::vector<size_t> counts;
  for (const std::vector<uint32_t>& group : groups) {
    std::vector<uint32_t> racks;
    for (const uint32_t host : group) racks.push_back(rack_of[host]);
    std::ranges::sort(racks);
    counts.push_back(static_cast<size_t>(std::unique(racks.begin(), racks.end()) - racks.begin()));
  }
  return counts;
}

TEST(ProbedRacks, BandwidthsTellRacks) {
  const std::vector<uint32_t> rack_of = hidden({4, 4, 4, 4});
  const auto tree = tree_of_probes(probes_of(rack_of, {}), 16);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const collective::Groups groups = racks_of(tree->topology, 16);
  EXPECT_THAT(groups, SizeIs(4));
  EXPECT_THAT(racks_in(groups, rack_of), Each(1));
  EXPECT_THAT(equal_stages(groups), ElementsAre(4, 4));
  EXPECT_THAT(tree->topology.switches(), SizeIs(5));
  for (const topology::Link& link : tree->topology.links()) {
    const double expected = tree->topology.is_host(link.a) ? 40e6 : 25e6;
    EXPECT_THAT(link.bits_per_second, DoubleNear(expected, 0.04 * expected));
    EXPECT_EQ(link.bits_per_second, link.back_bits_per_second);
  }
}

// A busy host answers a probe late, or sends too slowly. Such measurements are rare and far off.
TEST(ProbedRacks, OutliersMoveNoHost) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const std::vector<uint32_t> rack_of = hidden({4, 4, 4, 4}, seed);
    const topology::Topology probes = probes_of(rack_of, {.noise = 0.2}, seed);
    std::vector<topology::Link> links = probes.links();
    ranks::Random random(seed);
    for (int i = 0; i < 4; ++i) {
      links[16 + random.below(120)].latency_seconds = 100e-3;
      topology::Link& slow = links[16 + random.below(120)];
      slow.bits_per_second = slow.back_bits_per_second = 2e6;
    }
    const auto tree = tree_of_probes(*topology::Topology::make(probes.hosts(), probes.switches(), links), 16);
    ASSERT_TRUE(tree.ok()) << tree.status();
    EXPECT_THAT(racks_of(tree->topology, 16), SizeIs(4)) << seed;
    EXPECT_THAT(racks_in(racks_of(tree->topology, 16), rack_of), Each(1)) << seed;
  }
}

TEST(ProbedRacks, LatenciesTellRacks) {
  const std::vector<uint32_t> rack_of = hidden({8, 8});
  Speeds speeds{10e9, 10e9, 10e-6, 50e-6, 0.01, 0.2};
  const auto tree = tree_of_probes(probes_of(rack_of, speeds), 16);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const collective::Groups groups = racks_of(tree->topology, 16);
  EXPECT_THAT(groups, SizeIs(2));
  EXPECT_THAT(racks_in(groups, rack_of), Each(1));
  const topology::Link& uplink = tree->topology.links().back();
  EXPECT_THAT(uplink.bits_per_second, DoubleNear(80e9, 2e9)) << "no slower than the hosts of the rack";
  EXPECT_THAT(uplink.latency_seconds, DoubleNear(22e-6, 3e-6));
  EXPECT_THAT(tree->topology.links().front().latency_seconds, DoubleNear(5.5e-6, 0.5e-6));
}

TEST(ProbedRacks, SizesAndNumbersAreFound) {
  for (const std::vector<uint32_t>& sizes :
       {std::vector<uint32_t>{5, 3}, {4, 4}, {2, 2}, {6, 6, 6, 6, 6}, {2, 2, 2, 2, 2, 2}, {16, 16}}) {
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      const std::vector<uint32_t> rack_of = hidden(sizes, seed);
      const auto workers = static_cast<uint32_t>(rack_of.size());
      const auto tree = tree_of_probes(probes_of(rack_of, {}, seed), workers);
      ASSERT_TRUE(tree.ok()) << tree.status();
      const collective::Groups groups = racks_of(tree->topology, workers);
      EXPECT_THAT(groups, SizeIs(sizes.size()));
      EXPECT_THAT(racks_in(groups, rack_of), Each(1));
    }
  }
}

TEST(ProbedRacks, NumberMayBeGiven) {
  const std::vector<uint32_t> rack_of = hidden({4, 4, 4, 4});
  const auto tree = tree_of_probes(probes_of(rack_of, {}), 16, 2);
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_THAT(equal_stages(racks_of(tree->topology, 16)), ElementsAre(2, 8));
}

TEST(ProbedRacks, EqualDistancesAreOneSwitch) {
  const auto flat = tree_of_probes(probes_of(hidden({4, 4}), {10e9, 10e9, 20e-6, 20e-6, 0.04, 0.1}), 8);
  ASSERT_TRUE(flat.ok()) << flat.status();
  EXPECT_THAT(racks_of(flat->topology, 8), IsEmpty());
  EXPECT_THAT(flat->topology.switches(), SizeIs(1));
  const auto two = tree_of_probes(probes_of({0, 1}, {}), 2);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_THAT(two->topology.switches(), SizeIs(1));
}

TEST(ProbedRacks, SummersJoinTheirRacks) {
  std::vector<uint32_t> rack_of = hidden({4, 4});
  rack_of.insert(rack_of.end(), {1, 0, 1});
  const auto tree = tree_of_probes(probes_of(rack_of, {}), 8);
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_THAT(racks_in(racks_of(tree->topology, 11), rack_of), ElementsAre(1, 1));
}

TEST(ProbedRacks, NamesOfHostsMayBeTaken) {
  topology::Topology probes = probes_of({0, 0, 1, 1}, {});
  std::vector<topology::Host> hosts = probes.hosts();
  hosts[0].name = "core";
  hosts[1].name = "group-0";
  probes = *topology::Topology::make(hosts, probes.switches(), probes.links());
  EXPECT_TRUE(tree_of_probes(probes, 4).ok()) << tree_of_probes(probes, 4).status();
}

TEST(ProbedRacks, HostsKeepTheirOverheads) {
  topology::Topology probes = probes_of({0, 0, 1, 1}, {});
  std::vector<topology::Host> hosts = probes.hosts();
  hosts[2].overhead_seconds = 5e-6;
  probes = *topology::Topology::make(hosts, probes.switches(), probes.links());
  const auto tree = tree_of_probes(probes, 4);
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(tree->topology.hosts()[2].overhead_seconds, 5e-6);
}

TEST(ProbedRacks, NumbersMustFit) {
  const topology::Topology probes = probes_of({0, 0, 1, 1}, {});
  EXPECT_THAT(tree_of_probes(probes, 5).status().message(), HasSubstr("4 hosts, for 5 workers"));
  EXPECT_THAT(tree_of_probes(probes, 4, 5).status().message(), HasSubstr("4 workers in 5 groups"));
}

// The ranks of each group of two-level are the workers of one rack, though their numbers say nothing about it.
TEST(ProbedRacks, TwoLevelWorksInTheRacks) {
  const std::vector<uint32_t> rack_of = hidden({4, 4, 4, 4});
  const JobNetwork network{tree_of_probes(probes_of(rack_of, {}), 16)->topology};
  const std::vector<collective::Spec> schedules = {{"two-level", {4, 4}}};
  const auto mapped = map_ranks(network, 16, schedules);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  ASSERT_THAT(*mapped, SizeIs(1));
  collective::Groups groups(4);
  for (uint32_t worker = 0; worker < 16; ++worker) groups[mapped->front().spec.rank_of[worker] / 4].push_back(worker);
  EXPECT_THAT(racks_in(groups, rack_of), Each(1));
}

TEST(ProbedRacks, AutoComparesGroups) {
  const auto all = candidates(make_network(tree_of_probes(probes_of(hidden({4, 4}), {}), 8)->topology), 8, 0);
  ASSERT_TRUE(all.ok()) << all.status();
  for (const char* const algorithm : {"two-level", "racks"}) {
    const auto found =
        std::ranges::find(*all, absl::StrCat(algorithm, " 2,4"), [](const Candidate& each) { return name_of(each); });
    EXPECT_NE(found, all->end()) << algorithm;
  }
}

}  // namespace
}  // namespace gleaner::strategy
