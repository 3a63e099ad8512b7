// No simulated run takes less than plan::all_reduce_bound().
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "common/collective/algorithms.h"
#include "common/netsim/fleet.h"
#include "common/netsim/plan_run.h"
#include "common/netsim/schedule_run.h"
#include "common/plan/all_reduce_bound.h"
#include "common/plan/partitioner.h"
#include "common/topology/topology.h"
#include "networks.h"

namespace gleaner::netsim {
namespace {

constexpr uint64_t kVectorBytes = 24 << 20;  // the chunks of all schedules here have whole bytes

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint32_t below(uint32_t end) { return static_cast<uint32_t>(engine_() % end); }
  // Gbit/s; often equal, and sometimes not the same in both directions.
  topology::Link link(uint32_t a, uint32_t b, double times = 1) {
    const double out = times * 1e9 * (1 << below(5));
    return {a, b, out, below(4) == 0 ? out * (1 + below(3)) : out, 0};
  }

 private:
  std::mt19937_64 engine_;
};

std::vector<topology::Host> hosts_of(uint32_t count) {
  std::vector<topology::Host> hosts;
  for (uint32_t i = 0; i < count; ++i) hosts.push_back({"host-" + std::to_string(i), {}});
  return hosts;
}

std::vector<topology::Switch> switches_of(uint32_t count) {
  std::vector<topology::Switch> switches;
  for (uint32_t i = 0; i < count; ++i) switches.push_back({"switch-" + std::to_string(i)});
  return switches;
}

// Racks of unequal sizes and links, below one or two spines or a tree of switches.
topology::Topology random_racks(Random& random, uint32_t hosts) {
  const uint32_t racks = 1 + random.below(4), spines = racks == 1 ? 0 : random.below(3);
  std::vector<topology::Link> links;
  for (uint32_t host = 0; host < hosts; ++host) links.push_back(random.link(host, hosts + random.below(racks)));
  for (uint32_t rack = 0; rack < racks; ++rack) {
    for (uint32_t spine = 0; spine < spines; ++spine) {
      links.push_back(random.link(hosts + rack, hosts + racks + spine, 1 + random.below(3)));
    }
    if (spines == 0 && rack > 0) links.push_back(random.link(hosts + rack, hosts + random.below(rack), 2));
  }
  return *topology::Topology::make(hosts_of(hosts), switches_of(racks + spines), links);
}

topology::Topology random_topology(Random& random, uint32_t hosts) {
  switch (random.below(5)) {
    case 0:
      return *topology::fat_tree(4, gbit(4, 1 + random.below(4)));
    case 1:
      return *topology::bigraph((hosts + 3) / 4, 4, gbit(4, 1 + random.below(4)));
    default:
      return random_racks(random, hosts);
  }
}

std::vector<uint32_t> random_map(Random& random, uint32_t members, uint32_t hosts) {
  std::vector<uint32_t> map = identity(hosts);
  for (uint32_t i = 0; i < members; ++i) std::swap(map[i], map[i + random.below(hosts - i)]);
  map.resize(members);
  return map;
}

// Returns the schedules that have a default for this number of ranks, and two-level ones and racks of two groups.
std::vector<collective::Schedule> schedules_of(uint32_t ranks) {
  std::vector<collective::Schedule> schedules;
  for (const absl::string_view name : collective::algorithms()) {
    collective::Spec spec{.algorithm = std::string(name)};
    if (name == "racks" || name == "two-level") spec.group_sizes = {ranks / 3 + 1, ranks - ranks / 3 - 1};
    absl::StatusOr<collective::Schedule> schedule = collective::make_schedule(spec, ranks);
    if (schedule.ok()) schedules.push_back(*std::move(schedule));
  }
  return schedules;
}

class Seeds : public ::testing::TestWithParam<uint64_t> {};

TEST_P(Seeds, NoScheduleIsFaster) {
  Random random(GetParam());
  const uint32_t ranks = 3 + random.below(8);
  const topology::Network net = make_network(random_topology(random, ranks));
  const std::vector<uint32_t> map = random_map(random, ranks, net.topology.host_count());
  const plan::AllReduceBound bound = plan::all_reduce_bound(net.topology, map, ranks, kVectorBytes);
  EXPECT_GT(bound.seconds, 0);
  const std::vector<collective::Schedule> schedules = schedules_of(ranks);
  EXPECT_GE(schedules.size(), 7u);
  for (const collective::Schedule& schedule : schedules) {
    for (const uint32_t width : {1, 2}) {
      Partitions partitions{std::vector<double>(16, kVectorBytes / 16), {}, 64, width};
      partitions.limits.assign(ranks, {kVectorBytes / 4, 64 << 10});
      const auto cut = run_schedule(schedule, net, map, partitions, {});
      ASSERT_TRUE(cut.ok()) << cut.status();
      EXPECT_GE(cut->seconds, bound.seconds * (1 - 1e-9)) << schedule.algorithm << " of " << ranks << ", cut";
    }
    const auto whole = run_schedule(schedule, net, map, uncut(kVectorBytes), {});
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_GE(whole->seconds, bound.seconds * (1 - 1e-9)) << schedule.algorithm << " of " << ranks;
  }
}

TEST_P(Seeds, SummersAreNoFaster) {
  Random random(GetParam() + 1000);
  const uint32_t workers = 2 + random.below(6), members = workers + random.below(5);
  const topology::Network net = make_network(random_topology(random, members));
  const std::vector<uint32_t> map = random_map(random, members, net.topology.host_count());
  const auto plan = plan::make_plan(fleet_of(net.topology, map, workers), {{.name = "t", .elements = kVectorBytes / 4}},
                                    {.partition_bytes = 64 << 10});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto result = run_plan(*plan, net, map, {});
  ASSERT_TRUE(result.ok()) << result.status();
  const double bound = plan::all_reduce_bound(net.topology, map, workers, kVectorBytes).seconds;
  EXPECT_GE(result->seconds, bound * (1 - 1e-9)) << workers << " of " << members;
}
INSTANTIATE_TEST_SUITE_P(Random, Seeds, ::testing::Range(uint64_t{0}, uint64_t{60}));

}  // namespace
}  // namespace gleaner::netsim
