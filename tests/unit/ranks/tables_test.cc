// Prints the tables of docs/rank-maps.md over seeds: GLEANER_TABLE=SEEDS build/release/tests/ranks_test
// --gtest_filter='Tables*'. Without GLEANER_TABLE the tests are skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/collective/algorithms.h"
#include "common/ranks/annealing.h"
#include "common/ranks/grouping.h"
#include "tests/unit/ranks/affinity.h"
#include "tests/unit/ranks/cloud.h"
#include "tests/unit/ranks/figures.h"
#include "tests/unit/ranks/noisy_racks.h"

namespace gleaner::ranks {
namespace {

class Tables : public testing::Test {
 protected:
  void SetUp() override {
    const char* const wanted = std::getenv("GLEANER_TABLE");
    seeds_ = wanted == nullptr ? 0 : static_cast<uint64_t>(std::atoi(wanted));
    if (seeds_ == 0) GTEST_SKIP() << "GLEANER_TABLE=SEEDS prints the table";
  }

  // Prints the median, the least and the greatest value.
  void print(const std::string& name, std::vector<double> values) const {
    std::ranges::sort(values);
    std::printf("%s: %.3f (%.3f to %.3f)\n", name.c_str(), values[values.size() / 2], values.front(), values.back());
  }

  uint64_t seeds_ = 0;
};

// The worst of 300 random maps, in times of the best map that the search finds.
TEST_F(Tables, WorstAndBestInClouds) {
  for (const char* const algorithm : {"ring", "bcube", "halving-doubling", "two-level", "double-tree"}) {
    const collective::Schedule schedule = collective::make_schedule({.algorithm = algorithm}, 64).value();
    std::vector<double> values;
    for (uint64_t seed = 1; seed <= seeds_; ++seed) {
      const topology::Network network = make_network(*cloud({8, 8, 3}, seed));
      const FoundMap found = find_rank_map(schedule, network, kBytes, {.seed = seed}).value();
      Random random(seed);
      double worst = 0;
      for (int i = 0; i < 300; ++i) {
        RankMap map = identity(64);
        random.shuffle(map);
        worst = std::max(worst, seconds_of(network, schedule, map, kBytes));
      }
      values.push_back(worst / seconds_of(network, schedule, found.host_of, kBytes));
    }
    print(algorithm, std::move(values));
  }
}

TEST_F(Tables, AffinityInNoisyRacks) {
  std::vector<double> raw, of_alpha[2], found[2];
  for (uint64_t seed = 1; seed <= seeds_; ++seed) {
    const NoisyRacks racks(seed);
    raw.push_back(affinity_accuracy(racks.distances, racks.places).value());
    for (const double alpha : {1.0, 2.0}) {
      const auto embedding = embed(racks.distances, {.alpha = alpha}).value();
      of_alpha[alpha == 2].push_back(affinity_accuracy(embedding.distances(alpha), racks.places).value());
      std::vector<uint32_t> group_of(64);
      const Groups groups = group(embedding, {.groups = 8}).value();
      for (uint32_t i = 0; i < groups.size(); ++i) {
        for (const uint32_t host : groups[i]) group_of[host] = i;
      }
      found[alpha == 2].push_back(adjusted_mutual_information(group_of, racks.rack));
    }
  }
  print("PAIA without embedding", std::move(raw));
  print("PAIA, alpha 1", std::move(of_alpha[0]));
  print("PAIA, alpha 2", std::move(of_alpha[1]));
  print("AMI of groups and racks, alpha 1", std::move(found[0]));
  print("AMI of groups and racks, alpha 2", std::move(found[1]));
}

}  // namespace
}  // namespace gleaner::ranks
