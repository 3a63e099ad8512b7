#include "common/netsim/plan_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/netsim/fleet.h"
#include "common/plan/model.h"
#include "common/plan/partitioner.h"
#include "networks.h"

namespace gleaner::netsim {
namespace {

using ::testing::HasSubstr;

// A star in which each host has the bandwidth of its member.
absl::StatusOr<topology::Topology> star_of(const plan::Fleet& fleet, double latency = 0) {
  const uint32_t hosts = fleet.n() + fleet.k();
  std::vector<topology::Host> names;
  std::vector<topology::Link> links;
  for (uint32_t i = 0; i < hosts; ++i) {
    names.push_back({"host-" + std::to_string(i), {}});
    links.push_back({i, hosts, fleet.bits_per_second(i), fleet.bits_per_second(i), latency});
  }
  return topology::Topology::make(names, {{"switch"}}, links);
}

plan::Plan plan_of(const plan::Fleet& fleet, uint64_t bytes, uint64_t partition_bytes) {
  const auto made =
      plan::make_plan(fleet, {{.name = "gradient", .elements = bytes / 4}}, {.partition_bytes = partition_bytes});
  EXPECT_TRUE(made.ok()) << made.status();
  return *made;
}

struct Case {
  std::string name;
  std::vector<double> workers, summers;  // Gbit/s
};

class Fleets : public ::testing::TestWithParam<Case> {};

// With many partitions a step takes the bound of common/plan.
TEST_P(Fleets, ReachTheBound) {
  plan::Fleet fleet;
  for (const double gbit : GetParam().workers) fleet.worker_bits_per_second.push_back(gbit * 1e9);
  for (const double gbit : GetParam().summers) fleet.summer_bits_per_second.push_back(gbit * 1e9);
  constexpr uint64_t kBytes = 64 << 20;
  const plan::Plan plan = plan_of(fleet, kBytes, 2 << 10);
  const topology::Network net = make_network(*star_of(fleet));
  const auto result = run_plan(plan, net, identity(plan.members.size()), {});
  ASSERT_TRUE(result.ok()) << result.status();
  const double bound = plan::bound_seconds(fleet, kBytes);
  EXPECT_NEAR(result->seconds / bound, 1, 1e-3) << "events " << result->events;
}
INSTANTIATE_TEST_SUITE_P(Shapes, Fleets,
                         ::testing::Values(Case{"two", {10, 10}, {}}, Case{"three", {10, 10, 10}, {}},
                                           Case{"three_one", {10, 10, 10}, {10}},
                                           Case{"three_three", {10, 10, 10}, {10, 10, 10}},
                                           Case{"unequal", {10, 12, 15}, {5, 2}}),
                         [](const auto& param_info) { return param_info.param.name; });

// On racks whose uplinks carry a quarter of their hosts, the step takes longer than the bound of the hosts' links.
TEST(PlanRun, UplinkLimits) {
  const topology::Network net = make_network(*topology::racks(2, 4, gbit(10, 10)));
  const std::vector<uint32_t> map = identity(6);
  const plan::Fleet fleet = fleet_of(net.topology, map, 4);
  EXPECT_EQ(fleet.n(), 4);
  EXPECT_EQ(fleet.k(), 2);
  const plan::Plan plan = plan_of(fleet, 8 << 20, 64 << 10);
  const auto result = run_plan(plan, net, map, {});
  ASSERT_TRUE(result.ok()) << result.status();
  // All contributions to the two summers of the other rack cross one uplink.
  const std::vector<uint64_t> owned = plan::owned_bytes(plan);
  const double crossing = 4.0 * static_cast<double>(owned[4] + owned[5]) * 8 / 10e9;
  EXPECT_GE(result->seconds, crossing);
  EXPECT_LT(result->seconds, crossing * 1.1);
  const std::string from = net.topology.name(net.topology.from(result->steps[0].worst_link.channel));
  EXPECT_TRUE(from == "rack-0" || from == "rack-1" || from == "core") << from;
}

TEST(PlanRun, OneWorkerNeedsNoTime) {
  const topology::Network net = make_network(*topology::star(1, gbit(10)));
  const auto result = run_plan(plan_of({{10e9}, {}}, 1 << 20, 64 << 10), net, {0}, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->seconds, 0);
}

TEST(PlanRun, WrongMapIsNamed) {
  const topology::Network net = make_network(*topology::star(2, gbit(10)));
  const plan::Plan plan = plan_of({{10e9, 10e9}, {}}, 1 << 20, 64 << 10);
  EXPECT_THAT(run_plan(plan, net, {0, 0}, {}).status().message(),
              HasSubstr("members 0 and 1 are at the same host, 'host-0'"));
  EXPECT_THAT(run_plan(plan, net, {0}, {}).status().message(), HasSubstr("one for each of 2"));
}

}  // namespace
}  // namespace gleaner::netsim
