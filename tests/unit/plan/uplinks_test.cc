#include "common/plan/uplinks.h"

#include <numeric>
#include <random>

#include "common/plan/model.h"
#include "common/topology/builders.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gleaner::plan {
namespace {

using topology::Topology;

// A star whose hosts have these bandwidths.
Topology star_of(const Fleet& fleet) {
  std::vector<topology::Host> hosts;
  std::vector<topology::Link> links;
  for (size_t i = 0; i < fleet.n() + fleet.k(); ++i) {
    hosts.push_back({"h" + std::to_string(i), {}});
    links.push_back(
        {static_cast<uint32_t>(i), fleet.n() + fleet.k(), fleet.bits_per_second(i), fleet.bits_per_second(i), 0});
  }
  return *Topology::make(hosts, {{"switch"}}, links);
}

TEST(Uplinks, StarHasTheBoundOfTheModel) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> bandwidth(1e9, 10e9);
  for (uint32_t n = 1; n <= 8; ++n) {
    for (uint32_t k = 0; k <= 8; k += 2) {
      Fleet fleet{std::vector<double>(n), std::vector<double>(k)};
      for (double& value : fleet.worker_bits_per_second) value = bandwidth(random);
      for (double& value : fleet.summer_bits_per_second) value = bandwidth(random);
      if (random() % 2 == 0) fleet.push_ratio = bandwidth(random) / 4e9;
      const auto bound = bound_with_uplinks(star_of(fleet), n, k, 1e9, fleet.push_ratio);
      ASSERT_TRUE(bound.ok()) << bound.status();
      EXPECT_NEAR(bound->seconds, bound_seconds(fleet, 1e9), 1e-9 * bound->seconds) << n << " + " << k;
      EXPECT_NEAR(std::accumulate(bound->shares.begin(), bound->shares.end(), 0.0), 1, 1e-9);
    }
  }
}

// Two racks of two workers: 2M of contributions and results cross each uplink each way, whoever owns them.
TEST(Uplinks, OversubscribedUplinkBinds) {
  const Topology topology = *topology::racks(2, 2, {.bits_per_second = 8e9, .uplink_bits_per_second = 8e9});
  const auto bound = bound_with_uplinks(topology, 4, 0, 1e9);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_NEAR(bound->seconds, 2, 1e-9);
  for (const uint32_t link : bound->limits) {
    EXPECT_GE(std::min(topology.links()[link].a, topology.links()[link].b), 4u) << "a host's link binds";
  }
  EXPECT_EQ(bound->limits.size(), 2u);
}

// Three workers in rack 0, one in rack 1. Rack 0's uplink carries 3 - 2X in time T/2, so T = 2 takes all of X.
TEST(Uplinks, SharesFavourTheFullRack) {
  const Topology topology = *topology::racks(2, 3, {.bits_per_second = 8e9, .uplink_bits_per_second = 4e9});
  const auto bound = bound_with_uplinks(topology, 4, 0, 1e9);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_NEAR(bound->seconds, 2, 1e-9);
  EXPECT_NEAR(bound->shares[3], 0, 1e-9);
}

TEST(Uplinks, OwnedBytesTakeTheTimeOfTheBusiestLink) {
  const Topology topology = *topology::racks(2, 2, {.bits_per_second = 8e9, .uplink_bits_per_second = 4e9});
  // Worker 0 owns all of 1e9 bytes: it receives 3 contributions, and rack 1's uplink carries 2 in 1 s each.
  EXPECT_NEAR(busiest_link(topology, 4, {1'000'000'000, 0, 0, 0})->seconds, 4, 1e-9);
  const auto bound = bound_with_uplinks(topology, 4, 0, 1e9);
  std::vector<uint64_t> owned;
  for (const double share : bound->shares) owned.push_back(static_cast<uint64_t>(share * 1e9));
  EXPECT_NEAR(busiest_link(topology, 4, owned)->seconds, bound->seconds, 1e-6);
}

TEST(Uplinks, DirectLinkJoinsTwoHosts) {
  const auto topology = Topology::make({{"a", {}}, {"b", {}}}, {}, {{0, 1, 8e9, 8e9, 0}});
  const auto bound = bound_with_uplinks(*topology, 2, 0, 1e9);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_NEAR(bound->seconds, 1, 1e-9);
}

TEST(Uplinks, RefusesTooFewHosts) {
  const auto refused = [](const Topology& topology, uint32_t workers, uint32_t summers) {
    return bound_with_uplinks(topology, workers, summers, 1).status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(*topology::star(4, {}), 4, 1));
  EXPECT_TRUE(refused(*topology::star(4, {}), 0, 1));
}

// Racks below a core, with links of random bandwidths, each way another one.
Topology random_racks(std::mt19937& random) {
  const auto bandwidth = [&] { return 1e9 * static_cast<double>(1 + random() % 20); };
  const uint32_t hosts = 2 + random() % 8, racks = 1 + random() % 3;
  std::vector<topology::Host> named;
  std::vector<topology::Switch> switches = {{"core"}};
  std::vector<topology::Link> links;
  for (uint32_t host = 0; host < hosts; ++host) {
    named.push_back({"h" + std::to_string(host), {}});
    links.push_back({host, hosts + 1 + static_cast<uint32_t>(random() % racks), bandwidth(), bandwidth(), 0});
  }
  for (uint32_t rack = 1; rack <= racks; ++rack) {
    switches.push_back({"rack" + std::to_string(rack)});
    links.push_back({hosts + rack, hosts, bandwidth(), bandwidth(), 0});
  }
  return *Topology::make(named, switches, links);
}

// Returns the topology with two parallel links between switches on no path, so that the links are no tree.
Topology with_useless_loop(const Topology& topology) {
  std::vector<topology::Switch> switches = topology.switches();
  std::vector<topology::Link> links = topology.links();
  const uint32_t far = topology.node_count(), core = topology.host_count();
  switches.push_back({"far"});
  links.push_back({core, far, 1e9, 1e9, 0});
  links.push_back({core, far, 1e9, 1e9, 0});
  return *Topology::make(topology.hosts(), switches, links);
}

TEST(Uplinks, RoutesAgreeWithTheTree) {
  constexpr uint32_t kSeed = 1;
  std::mt19937 random(kSeed);
  for (int i = 0; i < 200; ++i) {
    const Topology tree = random_racks(random), loop = with_useless_loop(tree);
    const auto workers = static_cast<uint32_t>(1 + random() % tree.host_count());
    const auto summers = static_cast<uint32_t>(random() % (tree.host_count() - workers + 1));
    const auto by_tree = bound_with_uplinks(tree, workers, summers, 1e9);
    const auto by_routes = bound_with_uplinks(loop, workers, summers, 1e9);
    ASSERT_TRUE(by_routes.ok()) << by_routes.status();
    EXPECT_NEAR(by_routes->seconds, by_tree->seconds, 1e-8 * by_tree->seconds) << "seed " << kSeed << ", tree " << i;
    EXPECT_NEAR(std::accumulate(by_routes->shares.begin(), by_routes->shares.end(), 0.0), 1, 1e-9);
    std::vector<uint64_t> owned;
    for (const double share : by_routes->shares) owned.push_back(static_cast<uint64_t>(share * 1e12));
    const double on_tree = busiest_link(tree, workers, owned)->seconds;
    EXPECT_NEAR(on_tree, by_tree->seconds * 1e3, 1e-6 * on_tree) << "seed " << kSeed << ", tree " << i;
    EXPECT_NEAR(busiest_link(loop, workers, owned)->seconds, on_tree, 1e-9 * on_tree);
  }
}

// The three workers of the full rack own all, and each of them a third or little more.
TEST(Uplinks, SharesByRoutesAreNearlyEven) {
  const Topology racks = *topology::racks(2, 3, {.bits_per_second = 8e9, .uplink_bits_per_second = 4e9});
  const auto bound = bound_with_uplinks(with_useless_loop(racks), 4, 0, 1e9);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_NEAR(bound->shares[3], 0, 1e-9);
  for (size_t worker = 0; worker < 3; ++worker) EXPECT_NEAR(bound->shares[worker], 1.0 / 3, 0.1) << worker;
}

// A flow stays on one of two links, so 1e9 bytes each way take as long as on one.
TEST(Uplinks, ParallelLinksCarryOneRouteEach) {
  const auto topology = Topology::make({{"a", {}}, {"b", {}}}, {}, {{0, 1, 8e9, 8e9, 0}, {0, 1, 8e9, 8e9, 0}});
  const auto bound = bound_with_uplinks(*topology, 2, 0, 1e9);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_NEAR(bound->seconds, 1, 1e-9);
}

// The shares of a fat tree keep the busiest link busy for the time of the bound, which no even split reaches.
TEST(Uplinks, SharesSuitTheRoutesOfAFatTree) {
  const Topology topology = *topology::fat_tree(4, {.bits_per_second = 8e9, .uplink_bits_per_second = 8e9});
  const auto bound = bound_with_uplinks(topology, 16, 0, 1e9);
  ASSERT_TRUE(bound.ok()) << bound.status();
  std::vector<uint64_t> owned;
  for (const double share : bound->shares) owned.push_back(static_cast<uint64_t>(share * 1e9));
  EXPECT_NEAR(busiest_link(topology, 16, owned)->seconds, bound->seconds, 1e-6);
  EXPECT_GT(busiest_link(topology, 16, std::vector<uint64_t>(16, 62'500'000))->seconds, bound->seconds * 1.01);
  EXPECT_FALSE(bound->limits.empty());
}

TEST(Uplinks, SeveralLinksOfAHostCarryItsRoutes) {
  // Hosts at two switches that are joined, and host 0 at both.
  const auto topology = Topology::make(
      {{"a", {}}, {"b", {}}, {"c", {}}}, {{"s"}, {"t"}},
      {{0, 3, 8e9, 8e9, 0}, {0, 4, 8e9, 8e9, 0}, {1, 3, 8e9, 8e9, 0}, {2, 4, 8e9, 8e9, 0}, {3, 4, 8e9, 8e9, 0}});
  // Host 0 owns x: each of its links carries (1 - x)/2 + x if b and c own equal parts, and the links of b and c M +
  // x_b.
  const auto bound = bound_with_uplinks(*topology, 3, 0, 1e9);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_NEAR(bound->seconds, 1, 1e-9);
  EXPECT_NEAR(bound->shares[0], 1, 1e-9);
}

TEST(Uplinks, RefusesTooManyRoutes) {
  const auto bound = bound_with_uplinks(*topology::bigraph(64, 64, {}), kMaxRoutedMembers + 1, 0, 1);
  EXPECT_EQ(bound.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace gleaner::plan
