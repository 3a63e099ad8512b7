// The cost model (common/collective/cost.h) beside the simulation of the same messages.
#include "common/collective/cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/collective/algorithms.h"
#include "common/netsim/schedule_run.h"
#include "tests/unit/netsim/networks.h"

namespace gleaner::netsim {
namespace {

using Dice = std::mt19937_64;

double between(Dice& random, double least, double most) {
  return least + (most - least) * static_cast<double>(random() >> 11) * 0x1p-53;
}

// Hosts in racks in random order, whose overheads are up to `most_overhead` seconds; one rack is a star.
topology::Network random_racks(Dice& random, uint32_t hosts, uint32_t racks, uint32_t spines, double most_overhead) {
  std::vector<topology::Host> names;
  std::vector<topology::Switch> switches;
  std::vector<topology::Link> links;
  for (uint32_t i = 0; i < spines; ++i) switches.push_back({absl::StrCat("spine-", i)});
  for (uint32_t rack = 0; rack < racks; ++rack) {
    switches.push_back({absl::StrCat("rack-", rack)});
    const double uplink = between(random, 5e9, 40e9), latency = between(random, 1e-6, 40e-6);
    for (uint32_t spine = 0; spine < spines; ++spine) {
      links.push_back({hosts + spines + rack, hosts + spine, uplink, uplink, latency});
    }
  }
  for (uint32_t host = 0; host < hosts; ++host) {
    const double overhead = most_overhead > 0 ? most_overhead * between(random, 0.5, 1) : 0;
    names.push_back({absl::StrCat("host-", host), {}, overhead});
    const auto rack = static_cast<uint32_t>(host < racks ? host : random() % racks);
    const double speed = random() % 2 == 0 ? 10e9 : between(random, 5e9, 10e9);
    links.push_back({host, hosts + spines + rack, speed, speed, between(random, 1e-6, 5e-6)});
  }
  return topology::make_network(*topology::Topology::make(std::move(names), std::move(switches), std::move(links)));
}

// Cost / simulated time of an algorithm on random networks: stars, racks, and racks below two spines.
std::vector<double> ratios(const std::string& algorithm, uint64_t bytes, double most_overhead = 0) {
  std::vector<double> ratios;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Dice random(seed);
    const uint32_t hosts = std::vector<uint32_t>{8, 9, 12, 16}[random() % 4];
    const auto racks = static_cast<uint32_t>(1 + random() % 4);
    const auto spines = static_cast<uint32_t>(1 + random() % 2);
    const topology::Network network = random_racks(random, hosts, racks, spines, most_overhead);
    collective::Spec spec{.algorithm = algorithm};
    if (algorithm == "racks") spec.factors = hosts == 9 ? std::vector<uint32_t>{3, 3} : std::vector{2u, hosts / 2};
    const auto schedule = collective::make_schedule(spec, hosts);
    EXPECT_TRUE(schedule.ok()) << schedule.status();
    const auto cost = collective::cost(*schedule, network, identity(hosts), bytes);
    const auto run = run_schedule(*schedule, network, identity(hosts), uncut(static_cast<double>(bytes)), {});
    EXPECT_TRUE(cost.ok() && run.ok()) << cost.status() << run.status();
    ratios.push_back(cost->seconds / run->seconds);
  }
  std::ranges::sort(ratios);
  return ratios;
}

constexpr const char* kAlgorithms[] = {"gather",      "ring",  "halving-doubling", "double-tree", "bcube",
                                       "blueconnect", "racks", "two-level"};

// Where latencies decide, the longest path is what runs.
TEST(Cost, IsTheSimulatedTimeOfSmallVectors) {
  for (const char* algorithm : kAlgorithms) {
    const std::vector<double> all = ratios(algorithm, 64);
    EXPECT_GT(all.front(), 0.97) << algorithm;
    EXPECT_LT(all[all.size() * 9 / 10], 1.03) << algorithm;
    EXPECT_LT(all.back(), 1.2) << algorithm;
  }
}

// Messages of later steps that arrive early take a processor's time before those of the step in progress.
TEST(Cost, IsNearTheSimulatedTimeWithOverheads) {
  for (const char* algorithm : kAlgorithms) {
    const std::vector<double> all = ratios(algorithm, 64, 10e-6);
    EXPECT_GT(all.front(), 0.78) << algorithm;
    EXPECT_GT(all[all.size() / 10], 0.86) << algorithm;
    EXPECT_LT(all[all.size() * 9 / 10], 1.1) << algorithm;
    EXPECT_LT(all.back(), 1.2) << algorithm;
  }
}

TEST(Cost, IsTheSimulatedTimeOfRings) {
  for (const uint64_t bytes : {uint64_t{64} << 10, uint64_t{4} << 20}) {
    const std::vector<double> all = ratios("ring", bytes);
    EXPECT_GT(all.front(), 0.95);
    EXPECT_LT(all[all.size() * 9 / 10], 1.06);
    EXPECT_LT(all.back(), 1.2);
  }
}

// Elsewhere ranks that are ahead take a part of links from those that are late, which the cost does not see. So it is a
// guide for searches, and the simulator says how long a map takes.
TEST(Cost, IsNearTheSimulatedTime) {
  for (const char* algorithm : kAlgorithms) {
    const std::vector<double> all = ratios(algorithm, uint64_t{4} << 20);
    EXPECT_GT(all.front(), 0.6) << algorithm;
    EXPECT_GT(all[all.size() / 2], 0.68) << algorithm;
    EXPECT_LT(all.back(), 1.1) << algorithm;
  }
}

}  // namespace
}  // namespace gleaner::netsim
