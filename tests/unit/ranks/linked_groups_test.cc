#include "common/ranks/linked_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "common/ranks/random.h"

namespace gleaner::ranks {
namespace {

using testing::ElementsAre;

// Racks of `size` hosts: host h is in rack h / size. Distances are 20 within and 40 across racks, off by `error`.
struct Racks {
  uint32_t hosts = 0, size = 0;
  double error = 0.1;

  double measure(uint32_t a, uint32_t b, Random& random) const {
    return (a / size == b / size ? 20 : 40) * std::exp(error * random.normal());
  }
  // Returns the distances of `each` other hosts of each host, at random.
  std::vector<PairDistance> some(uint32_t each, uint64_t seed) const {
    Random random(seed);
    std::set<std::pair<uint32_t, uint32_t>> chosen;
    for (uint32_t host = 0; host < hosts; ++host) {
      for (uint32_t i = 0; i < each; ++i) {
        const uint32_t other = random.below(hosts);
        if (other != host) chosen.emplace(std::min(host, other), std::max(host, other));
      }
    }
    std::vector<PairDistance> pairs;
    for (const auto& [a, b] : chosen) pairs.push_back({a, b, measure(a, b, random)});
    return pairs;
  }
};

// Returns the number of hosts that are in a group of another rack's host.
size_t misplaced(const Groups& groups, uint32_t size) {
  size_t count = 0;
  for (const std::vector<uint32_t>& group : groups) {
    count += static_cast<size_t>(
        std::ranges::count_if(group, [&](uint32_t host) { return host / size != group.front() / size; }));
  }
  return count;
}

TEST(LinkedGroups, FewPairsOfManyHostsNeverJoinRacks) {
  const Racks racks{.hosts = 1024, .size = 16};
  const Groups groups = linked_groups(racks.hosts, racks.some(64, 1));
  EXPECT_EQ(misplaced(groups, racks.size), 0u);
  EXPECT_LT(groups.size(), 512u);  // of 64 racks, whose hosts have two near pairs each in the mean
}

TEST(LinkedGroups, EnoughPairsFindTheRacks) {
  const Racks racks{.hosts = 96, .size = 12};
  const Groups groups = linked_groups(racks.hosts, racks.some(48, 2));
  EXPECT_EQ(misplaced(groups, racks.size), 0u);
  EXPECT_EQ(groups.size(), 8u);
}

TEST(LinkedGroups, OneLevelMakesOneGroup) {
  const Racks one{.hosts = 128, .size = 128};
  EXPECT_EQ(linked_groups(one.hosts, one.some(32, 3)).size(), 1u);
  EXPECT_THAT(linked_groups(2, {}), ElementsAre(ElementsAre(0, 1)));
}

TEST(LinkedGroups, ASingleWrongDistanceJoinsNothing) {
  const Racks racks{.hosts = 40, .size = 20, .error = 0.05};
  std::vector<PairDistance> pairs = racks.some(20, 4);
  const auto across = std::ranges::find_if(pairs, [](const PairDistance& pair) { return pair.a < 20 && pair.b >= 20; });
  ASSERT_NE(across, pairs.end());
  across->distance = 20;
  EXPECT_EQ(linked_groups(racks.hosts, pairs).size(), 2u);
}

TEST(LinkedGroups, ManyHostsTakeLittleTime) {
  const Racks racks{.hosts = 5000, .size = 20};
  EXPECT_LT(misplaced(linked_groups(racks.hosts, racks.some(64, 5)), racks.size), 10u);
}

}  // namespace
}  // namespace gleaner::ranks
