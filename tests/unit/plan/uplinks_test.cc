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
      const auto bound = bound_with_uplinks(star_of(fleet), n, k, 1e9);
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

TEST(Uplinks, RefusesSeveralPathsAndTooFewHosts) {
  const auto refused = [](const Topology& topology, uint32_t workers, uint32_t summers) {
    return bound_with_uplinks(topology, workers, summers, 1).status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(*topology::fat_tree(4, {}), 4, 0));
  EXPECT_TRUE(refused(*topology::star(4, {}), 4, 1));
  EXPECT_TRUE(refused(*topology::star(4, {}), 0, 1));
}

}  // namespace
}  // namespace gleaner::plan
