#include "common/fabric/step_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "common/fabric/nearness.h"
#include "common/fabric/network.h"
#include "common/plan/uplinks.h"
#include "tests/unit/fabric/cluster.h"

namespace gleaner::fabric {
namespace {

struct Members {
  std::vector<Host> hosts;  // workers, then summers
  uint32_t workers = 0;
};

Members random_members(std::mt19937& random) {
  Members members{.workers = 2 + static_cast<uint32_t>(random() % 4)};
  for (uint32_t i = 0; i < members.workers + random() % 4; ++i) {
    members.hosts.push_back({absl::StrCat("h", i), absl::StrCat("n", 1 + random() % 8), 1e9 * (1 + random() % 20)});
  }
  return members;
}

StepBound bound_of(const Fabric& fabric, const Members& members, size_t hosts, double push_ratio) {
  StepBound bound(fabric, push_ratio);
  for (size_t i = 0; i < hosts; ++i) {
    const Host& host = members.hosts[i];
    i < members.workers ? bound.add_worker(host.node, host.bits_per_second)
                        : bound.add_summer(host.node, host.bits_per_second);
  }
  return bound;
}

TEST(StepBound, IsThatOfTheNetwork) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const auto uplink = [&] { return 1e9 * static_cast<double>(1 + random() % 20); };
    const Fabric fabric = small_cluster({{"zone", "a", uplink()}, {"rack", "r1", uplink()}});
    const Members members = random_members(random);
    const double push_ratio = i % 2 == 0 ? 1 : 0.5 + random() % 3;
    const auto summers = static_cast<uint32_t>(members.hosts.size()) - members.workers;
    const auto expected =
        plan::bound_with_uplinks(*network_of(fabric, members.hosts), members.workers, summers, 1, push_ratio);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const StepBound bound = bound_of(fabric, members, members.hosts.size(), push_ratio);
    EXPECT_NEAR(bound.seconds_per_byte(), expected->seconds, 1e-9 * expected->seconds) << "members " << i;
    if (summers == 0) continue;
    const StepBound before = bound_of(fabric, members, members.hosts.size() - 1, push_ratio);
    const Host& last = members.hosts.back();
    EXPECT_NEAR(before.with_summer(last.node, last.bits_per_second), expected->seconds, 1e-9 * expected->seconds) << i;
  }
}

// Two workers of 8 Gbit/s are in rack r1 of zone a, and two in r2, which has an uplink of 2 Gbit/s. Two contributions
// and two results of each byte cross it, in 2 s for each Gbyte, whatever summers there are.
TEST(StepBound, NoSummerMendsAFullUplink) {
  const Fabric fabric = small_cluster({{"rack", "r2", 8e9}});
  StepBound bound(fabric, 1);
  for (const char* node : {"n1", "n2", "n3", "n4"}) bound.add_worker(node, 16e9);
  EXPECT_NEAR(bound.seconds_per_byte() * 1e9, 2, 1e-9);
  EXPECT_NEAR(bound.with_summer("n5", 16e9) * 1e9, 2, 1e-9);
  EXPECT_EQ(bound.with_summer("n5", 16e9, 1.9e-9), std::numeric_limits<double>::infinity());
}

TEST(StepBound, SummerIsWorthWhatItsUplinkLeaves) {
  const Fabric fabric = small_cluster({{"zone", "b", 2e9}});
  StepBound bound(fabric, 1);
  for (const char* node : {"n1", "n2", "n3", "n4"}) bound.add_worker(node, 8e9);
  EXPECT_EQ(bound.with_summer("n5", 8e9), bound.with_summer("n6", 2e9));
  EXPECT_LT(bound.with_summer("n6", 8e9), bound.with_summer("n5", 8e9));
  bound.add_summer("n5", 8e9);
  EXPECT_EQ(bound.with_summer("n7", 8e9), bound.seconds_per_byte()) << "the uplink of zone b is full";
}

TEST(StepBound, OneWorkerNeedsNoNetwork) {
  const Fabric fabric;
  StepBound bound(fabric, 1);
  bound.add_worker("n1", 8e9);
  EXPECT_EQ(bound.seconds_per_byte(), 0);
}

TEST(Nearness, NearerNodesShareMoreGroups) {
  const Fabric fabric = small_cluster();
  const std::vector<std::string> workers = {"n1"};
  const Nearness groups(fabric, workers);
  EXPECT_EQ(groups.of("n2"), 2u);  // zone and rack
  EXPECT_EQ(groups.of("n3"), 1u);  // the zone
  EXPECT_EQ(groups.of("n5"), 0u);
  EXPECT_EQ(groups.of("unknown"), 0u);
}

TEST(KnownUplinks, CountWhereTheyPartTheNodes) {
  const Fabric fabric = small_cluster({{"zone", "a", 1e9}});
  EXPECT_TRUE(has_known_uplinks(fabric, {"n1", "n5"}));
  EXPECT_FALSE(has_known_uplinks(fabric, {"n1", "n3"})) << "both are in zone a";
  EXPECT_FALSE(has_known_uplinks(fabric, {"n5", "n6"})) << "the uplink of zone b is unknown";
}

}  // namespace
}  // namespace gleaner::fabric
