// Tests Paths against a plain search, over random networks, and that flows spread over equal paths.
#include "common/topology/paths.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/topology/builders.h"
#include "common/topology/network.h"

namespace gleaner::topology {
namespace {

constexpr uint32_t kFar = UINT32_MAX;

// The distance and the number of shortest paths from one host to every node, by a search over all nodes.
struct Reference {
  std::vector<uint32_t> hops;
  std::vector<uint64_t> count;

  Reference(const Topology& topology, uint32_t from)
      : hops(topology.node_count(), kFar), count(topology.node_count(), 0) {
    hops[from] = 0;
    count[from] = 1;
    std::vector<uint32_t> layer = {from};
    while (!layer.empty()) {
      std::vector<uint32_t> next;
      for (const uint32_t node : layer) {
        if (node != from && topology.is_host(node) && !topology.switches().empty()) continue;
        for (const Topology::Neighbour& end : topology.neighbours(node)) {
          if (hops[end.node] == kFar) {
            hops[end.node] = hops[node] + 1;
            next.push_back(end.node);
          }
          if (hops[end.node] == hops[node] + 1) count[end.node] += count[node];
        }
      }
      layer = std::move(next);
    }
  }
};

// Returns a random network of up to 12 hosts, with several links at some hosts, parallel links, and spare switches.
Topology random_topology(std::mt19937_64& random) {
  const auto pick = [&](uint32_t most) { return std::uniform_int_distribution(0u, most)(random); };
  while (true) {
    const uint32_t host_count = 1 + pick(11), switch_count = pick(8);
    std::vector<Host> hosts;
    std::vector<Switch> switches;
    std::vector<Link> links;
    for (uint32_t i = 0; i < host_count; ++i) hosts.push_back({absl::StrCat("h", i), {}});
    for (uint32_t i = 0; i < switch_count; ++i) switches.push_back({absl::StrCat("s", i)});
    const uint32_t nodes = host_count + switch_count;
    const auto join = [&](uint32_t a, uint32_t b) {
      if (a != b) links.push_back({a, b, 1e9, 1e9, 1e-6});
    };
    for (uint32_t i = 0; i < host_count && switch_count > 0; ++i) join(i, host_count + pick(switch_count - 1));
    for (uint32_t i = pick(3 * nodes); i > 0; --i) join(pick(nodes - 1), pick(nodes - 1));
    for (uint32_t i = pick(3 * switch_count); i > 0; --i) {
      join(host_count + pick(switch_count - 1), host_count + pick(switch_count - 1));
    }
    auto made = Topology::make(hosts, switches, links);
    if (made.ok()) return *std::move(made);
  }
}

std::vector<uint32_t> path_of(const Paths& paths, uint32_t from, uint32_t to, uint64_t flow) {
  std::vector<uint32_t> channels;
  paths.append_path(from, to, flow, channels);
  return channels;
}

void expect_path(const Topology& topology, const std::vector<uint32_t>& channels, uint32_t from, uint32_t to) {
  uint32_t node = from;
  for (const uint32_t channel : channels) {
    ASSERT_EQ(topology.from(channel), node);
    ASSERT_TRUE(node == from || !topology.is_host(node) || topology.switches().empty());
    node = topology.to(channel);
  }
  ASSERT_EQ(node, to);
}

TEST(Paths, EqualAPlainSearch) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const Topology topology = random_topology(random);
    const Paths paths(topology);
    for (uint32_t from = 0; from < topology.host_count(); ++from) {
      const Reference reference(topology, from);
      for (uint32_t to = 0; to < topology.host_count(); ++to) {
        ASSERT_EQ(paths.hops(from, to), reference.hops[to]) << from << " " << to;
        ASSERT_EQ(paths.count(from, to), reference.count[to]) << from << " " << to;
        for (const uint64_t flow : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
          const auto channels = path_of(paths, from, to, flow);
          ASSERT_EQ(channels.size(), reference.hops[to]);
          ASSERT_NO_FATAL_FAILURE(expect_path(topology, channels, from, to));
        }
      }
    }
  }
}

TEST(Paths, FlowsSpreadOverAllPaths) {
  const auto topology = fat_tree(8, {});
  ASSERT_TRUE(topology.ok());
  const Paths paths(*topology);
  ASSERT_EQ(paths.count(0, 127), 16u);
  std::map<std::vector<uint32_t>, int> flows;
  for (uint64_t flow = 0; flow < 16000; ++flow) ++flows[path_of(paths, 0, 127, flow)];
  EXPECT_EQ(flows.size(), 16u);
  for (const auto& [path, count] : flows) EXPECT_NEAR(count, 1000, 150);
}

// The choices of two switches on a path are independent.
TEST(Paths, ParallelLinksAreDifferentPaths) {
  std::vector<Link> links = {{0, 2, 1, 1, 0}, {4, 1, 1, 1, 0}};
  for (int i = 0; i < 4; ++i) {
    links.push_back({2, 3, 1, 1, 0});
    links.push_back({3, 4, 1, 1, 0});
  }
  const auto topology = Topology::make({{"a"}, {"b"}}, {{"s"}, {"t"}, {"u"}}, links);
  ASSERT_TRUE(topology.ok()) << topology.status();
  const Paths paths(*topology);
  EXPECT_EQ(paths.count(0, 1), 16u);
  std::set<std::vector<uint32_t>> taken;
  for (uint64_t flow = 0; flow < 500; ++flow) taken.insert(path_of(paths, 0, 1, flow));
  EXPECT_EQ(taken.size(), 16u);
}

TEST(Paths, EqualFlowsTakeEqualPaths) {
  const auto topology = fat_tree(6, {});
  ASSERT_TRUE(topology.ok());
  const Paths paths(*topology), again(*topology);
  for (uint64_t flow = 0; flow < 200; ++flow) {
    EXPECT_EQ(path_of(paths, 3, 50, flow), path_of(paths, 3, 50, flow));
    EXPECT_EQ(path_of(paths, 3, 50, flow), path_of(again, 3, 50, flow));
  }
}

// A host that is at two switches is no way from one to the other.
TEST(Network, MovesWithItsPaths) {
  std::vector<Link> links;
  for (const auto& [a, b] : {std::pair{0u, 3u}, {1u, 4u}, {2u, 3u}, {2u, 4u}, {3u, 5u}, {4u, 5u}}) {
    links.push_back({a, b, 1e9, 1e9, 0});
  }
  Network made =
      make_network(*Topology::make({{"a", {}}, {"b", {}}, {"both", {}}}, {{"left"}, {"right"}, {"core"}}, links));
  const Network moved = std::move(made);
  made = make_network(*star(2, {}));
  EXPECT_EQ(moved.paths.hops(0, 1), 4u);
  EXPECT_EQ(moved.paths.count(0, 1), 1u);
  EXPECT_EQ(made.paths.hops(0, 1), 2u);
}

TEST(Paths, OneHost) {
  const auto topology = star(1, {});
  ASSERT_TRUE(topology.ok());
  const Paths paths(*topology);
  EXPECT_EQ(paths.hops(0, 0), 0u);
  EXPECT_EQ(paths.count(0, 0), 1u);
  EXPECT_TRUE(path_of(paths, 0, 0, 5).empty());
}

// 70 stages of two parallel links: 2⁷⁰ paths.
TEST(Paths, CountSaturates) {
  std::vector<Switch> switches;
  std::vector<Link> links = {{0, 2, 1, 1, 0}, {1, 72, 1, 1, 0}};
  for (uint32_t i = 0; i <= 70; ++i) switches.push_back({absl::StrCat("s", i)});
  for (uint32_t i = 0; i < 140; ++i) links.push_back({2 + i / 2, 3 + i / 2, 1, 1, 0});
  const auto topology = Topology::make({{"a"}, {"b"}}, switches, links);
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(Paths(*topology).count(0, 1), UINT64_MAX);
}

// A chain of the most switches: distances do not overflow.
TEST(Paths, LongestChain) {
  std::vector<Switch> switches;
  std::vector<Link> links = {{0, 2, 1, 1, 0}, {1, 1 + kMaxSwitches, 1, 1, 0}};
  for (uint32_t i = 0; i < kMaxSwitches; ++i) switches.push_back({absl::StrCat("s", i)});
  for (uint32_t i = 0; i + 1 < kMaxSwitches; ++i) links.push_back({2 + i, 3 + i, 1, 1, 0});
  const auto topology = Topology::make({{"a"}, {"b"}}, switches, links);
  ASSERT_TRUE(topology.ok()) << topology.status();
  const Paths paths(*topology);
  EXPECT_EQ(paths.hops(0, 1), kMaxSwitches + 1);
  EXPECT_EQ(path_of(paths, 0, 1, 0).size(), kMaxSwitches + 1);
}

}  // namespace
}  // namespace gleaner::topology
