#include "common/strategy/network_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "common/plan/partitioner.h"
#include "common/plan/uplinks.h"
#include "common/strategy/choice.h"
#include "common/topology/builders.h"
#include "common/topology/subset.h"

namespace gleaner::strategy {
namespace {

using testing::DoubleNear;
using testing::IsEmpty;

plan::Plan plan_with(uint32_t workers, uint32_t summers) {
  const plan::Fleet fleet{std::vector<double>(workers, 10e9), std::vector<double>(summers, 10e9)};
  return *plan::make_plan(fleet, {}, {});
}

double seconds(const plan::Plan& plan, const JobNetwork& known, const std::vector<double>& shares) {
  const topology::Topology network = *topology_of(plan, known, {});
  std::vector<uint64_t> owned;
  for (const double share : shares) owned.push_back(static_cast<uint64_t>(share * 1e12));
  return plan::busiest_link(network, plan.workers, owned)->seconds;
}

TEST(NetworkShares, TakeNoLongerThanThoseOfTheFleet) {
  std::mt19937 random(1);
  uint32_t faster = 0;
  for (int i = 0; i < 100; ++i) {
    const uint32_t racks = 2 + random() % 2, hosts = 1 + random() % 4, summers = random() % 4;
    JobNetwork known{.topology = *topology::racks(racks, hosts, {10e9, 1e9 * (1 + random() % 40), 1e-6})};
    known.summers_at.emplace();
    known.summer_latency_seconds.resize(racks + 1, 1e-6);
    for (uint32_t j = 0; j < summers; ++j) known.summers_at->push_back(random() % (racks + 1));
    const plan::Plan plan = plan_with(racks * hosts, summers);
    const std::vector<double> by_fleet = plan::shares(plan::fleet_of(plan));
    const double before = seconds(plan, known, by_fleet);
    const double after = seconds(plan, known, network_shares(plan, 1, known, {}));
    EXPECT_LE(after, before * (1 + 1e-6)) << i;
    faster += after < before * 0.99;
  }
  EXPECT_GT(faster, 5u) << "no uplink binds";
}

TEST(NetworkShares, StarAndRoutesLeaveThemToTheBandwidths) {
  EXPECT_THAT(network_shares(plan_with(4, 0), 1, {.topology = *topology::star(4, {})}, {}), IsEmpty());
  EXPECT_THAT(network_shares(plan_with(16, 0), 1, {.topology = *topology::fat_tree(4, {})}, {}), IsEmpty());
}

TEST(NetworkShares, EmptyPlacesAndStandbyOwnNothing) {
  // Rack 0 has three of the four workers, so that its uplink is busy with contributions unless members there own all.
  JobNetwork known{.topology = *topology::racks(2, 3, {10e9, 1e9, 1e-6})};
  const std::vector<uint32_t> hosts = {0, 1, 2, 3};
  known.topology = *topology::subset(known.topology, hosts);
  known.summers_at = {2, 1, 1};
  known.summer_latency_seconds.resize(3, 1e-6);
  plan::Plan plan = plan_with(4, 3);
  plan.members[5] = {};
  const std::vector<double> shares = network_shares(plan, 1, known, {});
  ASSERT_EQ(shares.size(), 7u);
  EXPECT_EQ(shares[5], 0);
  EXPECT_THAT(shares[3] + shares[4], DoubleNear(0, 1e-9)) << "they are in rack 1";
  EXPECT_GT(shares[6], 0);
}

}  // namespace
}  // namespace gleaner::strategy
