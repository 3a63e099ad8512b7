// Counts how often tree_of_probes() finds the racks of noisy probes, and how often it names wrong ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/ranks/random.h"
#include "common/strategy/probed_racks.h"
#include "common/strategy/rack_times.h"
#include "common/topology/probes.h"
#include "tests/unit/strategy/probed_hosts.h"

namespace gleaner::strategy {
namespace {

enum class Measure { kLatency, kBandwidth };
enum class Errors { kUniform, kNormal };  // up to +- the noise; or with it as standard deviation

struct Case {
  std::vector<uint32_t> sizes;
  double noise = 0.1;
  Measure measure = Measure::kBandwidth;
  Errors errors = Errors::kUniform;
  double contrast = 1.6;  // of a far distance to a near one
};

topology::Topology noisy_probes(const Case& each, const std::vector<uint32_t>& rack_of, uint64_t seed) {
  ranks::Random random(seed);
  topology::Probes probes;
  const size_t hosts = rack_of.size();
  probes.latency_seconds.assign(hosts * hosts, 0);
  probes.bits_per_second.assign(hosts * hosts, 100e9);
  for (size_t a = 0; a < hosts; ++a) {
    probes.names.push_back(absl::StrCat("h", a));
    for (size_t b = 0; b < a; ++b) {
      const double drawn = each.errors == Errors::kNormal ? random.normal() : 2 * random.uniform() - 1;
      const double error = std::max(0.1, 1 + each.noise * drawn);
      const double far = rack_of[a] == rack_of[b] ? 1 : each.contrast;
      double& bits = probes.bits_per_second[a * hosts + b];
      double& latency = probes.latency_seconds[a * hosts + b];
      if (each.measure == Measure::kBandwidth) {
        bits = 40e6 / far * error;
        latency = 50e-6 * (1 + 0.5 * random.uniform());
      } else {
        latency = 50e-6 * far * error;
      }
      probes.bits_per_second[b * hosts + a] = bits;
      probes.latency_seconds[b * hosts + a] = latency;
    }
  }
  return *topology::topology_of(probes);
}

struct Counts {
  uint32_t found = 0, none = 0, wrong = 0;
  uint32_t unsure = 0;  // of none
};

Counts count(const Case& each, uint32_t seeds) {
  Counts counts;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const std::vector<uint32_t> rack_of = hidden(each.sizes, seed);
    const auto workers = static_cast<uint32_t>(rack_of.size());
    const auto tree = tree_of_probes(noisy_probes(each, rack_of, seed), workers);
    collective::Groups expected(each.sizes.size());
    for (uint32_t host = 0; host < workers; ++host) expected[rack_of[host]].push_back(host);
    std::ranges::sort(expected);
    if (expected.size() == 1) expected.clear();
    collective::Groups groups = racks_of(tree->topology, workers);
    std::ranges::sort(groups);
    counts.unsure += tree->unsure ? 1 : 0;
    ++(groups == expected ? counts.found : groups.empty() ? counts.none : counts.wrong);
  }
  return counts;
}

constexpr uint32_t kSeeds = 30;

TEST(NoisyProbes, RacksAreFoundAtTenPercent) {
  for (const Case& each : {Case{{2, 6, 8}, 0.1, Measure::kBandwidth, Errors::kUniform},
                           Case{{2, 6, 8}, 0.1, Measure::kLatency, Errors::kNormal},
                           Case{{4, 4, 4, 4}, 0.1, Measure::kLatency, Errors::kNormal},
                           Case{{8, 8}, 0.1, Measure::kBandwidth, Errors::kNormal},
                           Case{{3, 4, 5, 6, 9}, 0.1, Measure::kBandwidth, Errors::kNormal}}) {
    const Counts counts = count(each, kSeeds);
    EXPECT_GE(counts.found, 27u) << absl::StrJoin(each.sizes, "+");
    EXPECT_EQ(counts.wrong, 0u) << absl::StrJoin(each.sizes, "+");
  }
}

TEST(NoisyProbes, RacksAreFoundAtThirtyPercent) {
  for (const Measure measure : {Measure::kLatency, Measure::kBandwidth}) {
    const Counts counts = count({{6, 6, 6}, 0.3, measure, Errors::kNormal}, kSeeds);
    EXPECT_GE(counts.found, 21u);
    EXPECT_LE(counts.wrong, 1u);
  }
}

TEST(NoisyProbes, OneSwitchHasNoRacks) {
  for (const uint32_t hosts : {4u, 6u, 16u}) {
    EXPECT_LE(count({{hosts}, 0.2, Measure::kLatency, Errors::kNormal}, kSeeds).wrong, 1u) << hosts;
  }
}

// One host that is far from all others may as well have a slow link.
TEST(NoisyProbes, OneFarHostIsNoRack) {
  const Counts counts = count({{1, 7}, 0.1, Measure::kBandwidth, Errors::kNormal}, kSeeds);
  EXPECT_EQ(counts.none, kSeeds);
  EXPECT_EQ(counts.unsure, 0u);
}

// Errors of 30 % hide racks of three hosts. The groups are doubtful then, rather than wrong.
TEST(NoisyProbes, DoubtIsTold) {
  const Counts counts = count({{3, 4, 5, 6, 9}, 0.3, Measure::kLatency, Errors::kNormal}, kSeeds);
  EXPECT_LE(counts.wrong, 2u);
  EXPECT_GE(counts.unsure, 20u);
}

// Prints the table of docs/rank-maps.md, and asserts nothing: GLEANER_TABLE=SEEDS prints it.
TEST(NoisyProbes, Table) {
  const char* const wanted = std::getenv("GLEANER_TABLE");
  const uint32_t seeds = wanted == nullptr ? 0 : static_cast<uint32_t>(std::atoi(wanted));
  if (seeds == 0) GTEST_SKIP() << "GLEANER_TABLE=SEEDS prints the table";
  for (const Errors errors : {Errors::kUniform, Errors::kNormal}) {
    for (const Measure measure : {Measure::kLatency, Measure::kBandwidth}) {
      for (const double noise : {0.03, 0.1, 0.2, 0.3}) {
        std::printf("%s %s %.2f:", errors == Errors::kUniform ? "uniform" : "normal",
                    measure == Measure::kLatency ? "latency" : "bandwidth", noise);
        for (const std::vector<uint32_t>& sizes : {std::vector<uint32_t>{2, 6, 8},
                                                   {6, 6, 6},
                                                   {4, 4, 4, 4},
                                                   {8, 8},
                                                   {1, 7},
                                                   {1, 7, 8},
                                                   {3, 4, 5, 6, 9},
                                                   {3, 3},
                                                   {2, 2},
                                                   {4},
                                                   {6},
                                                   {16},
                                                   {40}}) {
          const Counts counts = count({sizes, noise, measure, errors}, seeds);
          std::printf("  %s %u/%u/%u", absl::StrJoin(sizes, "+").c_str(), counts.found, counts.none, counts.wrong);
          std::fflush(stdout);
        }
        std::printf("\n");
      }
    }
  }
}

}  // namespace
}  // namespace gleaner::strategy
