#include "common/ranks/hdrm.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/collective/halving_doubling.h"
#include "tests/unit/ranks/figures.h"

namespace gleaner::ranks {
namespace {

// Returns the ranks by side and switch for the first port, as EFLOPS Fig. 10 shows them.
std::vector<std::vector<uint32_t>> base(const topology::Topology& graph, const RankMap& host_of) {
  std::vector<std::vector<uint32_t>> sides(2);
  for (uint32_t rank = 0; rank < host_of.size(); ++rank) {
    const std::vector<uint32_t>& place = graph.hosts()[host_of[rank]].place;
    if (place[2] != 0) continue;
    sides[place[0]].resize(std::max<size_t>(sides[place[0]].size(), place[1] + 1));
    sides[place[0]][place[1]] = rank;
  }
  return sides;
}

TEST(Hdrm, BaseIsThatOfThePaper) {
  const topology::Network graph = make_network(*topology::bigraph(1, 8, {}));
  const RankMap map = hdrm(graph.topology, 8).value();
  EXPECT_EQ(base(graph.topology, map), (std::vector<std::vector<uint32_t>>{{0, 3, 5, 6}, {1, 2, 4, 7}}));
}

// All M x N BiGraphs of powers of two with M <= N/2 and N <= 128, with every power of two of ranks: 196 cases.
TEST(Hdrm, HasOneFlowOnEachLinkInEveryStep) {
  uint32_t cases = 0;
  for (uint32_t switches = 2; switches <= 128; switches *= 2) {
    for (uint32_t hosts = 1; hosts <= switches / 2; hosts *= 2) {
      const topology::Network graph = make_network(*topology::bigraph(hosts, switches, {}));
      for (uint32_t ranks = 2; ranks <= hosts * switches; ranks *= 2) {
        const auto map = hdrm(graph.topology, ranks);
        ASSERT_TRUE(map.ok()) << map.status();
        const Conflicts conflicts = conflicts_of(graph, collective::halving_doubling(ranks), *map);
        EXPECT_EQ(conflicts.most_flows, 1u) << hosts << "x" << switches << ", " << ranks << " ranks";
        ++cases;
      }
    }
  }
  EXPECT_EQ(cases, 196u);
}

// In the step with the largest distance all pairs are on different sides, and those of a switch lead to one switch.
TEST(Hdrm, IdentityPutsAllFlowsOfASwitchOnOneLink) {
  const topology::Network graph = make_network(*topology::bigraph(4, 16, {}));
  const auto flows = count_flows(collective::halving_doubling(64), graph, identity(64)).value();
  uint32_t most = 0;
  for (const ChannelFlows& channel : flows.of_step(5)) most = std::max(most, channel.flows);
  EXPECT_EQ(most, 4u);
}

TEST(Hdrm, ReadsPlacesAndNotTheOrderOfHosts) {
  const topology::Network built = make_network(*topology::bigraph(2, 4, {}));
  std::vector<topology::Host> hosts = built.topology.hosts();
  std::vector<topology::Link> links = built.topology.links();
  const uint32_t last = built.topology.host_count() - 1;
  std::reverse(hosts.begin(), hosts.end());
  for (topology::Link& link : links) {
    if (link.a <= last) link.a = last - link.a;
    if (link.b <= last) link.b = last - link.b;
  }
  const topology::Network turned = make_network(*topology::Topology::make(hosts, built.topology.switches(), links));
  const RankMap map = hdrm(turned.topology, 8).value();
  EXPECT_EQ(conflicts_of(turned, collective::halving_doubling(8), map).most_flows, 1u);
  const RankMap before = hdrm(built.topology, 8).value();
  for (uint32_t rank = 0; rank < 8; ++rank) EXPECT_EQ(map[rank], last - before[rank]);
}

std::string refusal(const absl::StatusOr<topology::Topology>& topology, uint32_t ranks) {
  const auto map = hdrm(topology.value(), ranks);
  return map.ok() ? "" : std::string(map.status().message());
}

TEST(Hdrm, RefusesOtherTopologies) {
  EXPECT_EQ(refusal(topology::star(8, {}), 8),
            "HDRM needs a BiGraph: host 'host-0' has no place [side, switch, port] with side 0 or 1");
  EXPECT_EQ(refusal(topology::fat_tree(4, {}), 16),
            "HDRM needs a BiGraph: host 'host-8' has no place [side, switch, port] with side 0 or 1");
  auto hosts = topology::bigraph(1, 4, {})->hosts();
  const auto star = topology::star(4, {});
  EXPECT_EQ(refusal(topology::Topology::make(hosts, star->switches(), star->links()), 4),
            "HDRM needs a BiGraph: hosts whose places name different switches are at one switch");
  hosts[3].place = {1, 0, 0};
  EXPECT_EQ(refusal(topology::Topology::make(hosts, star->switches(), star->links()), 4),
            "HDRM needs a BiGraph: hosts 'host-2' and 'host-3' have one place");
  hosts[3].place = {1, 4000000000, 0};
  EXPECT_EQ(refusal(topology::Topology::make(hosts, star->switches(), star->links()), 4),
            "HDRM needs a BiGraph: host 'host-3' has a switch or port number above the number of hosts");
}

TEST(Hdrm, RefusesBiGraphWithoutALink) {
  const auto whole = topology::bigraph(1, 4, {});
  auto links = whole->links();
  links.pop_back();
  EXPECT_EQ(refusal(topology::Topology::make(whole->hosts(), whole->switches(), links), 4),
            "HDRM needs a BiGraph: no link joins 'upper-1' and 'lower-1', which are on different sides");
}

TEST(Hdrm, RefusesOtherCounts) {
  EXPECT_EQ(refusal(topology::bigraph(3, 8, {}), 16),
            "HDRM needs a BiGraph MxN whose M and N are powers of two with M <= N/2; this one is 3x8");
  EXPECT_EQ(refusal(topology::bigraph(4, 4, {}), 16),
            "HDRM needs a BiGraph MxN whose M and N are powers of two with M <= N/2; this one is 4x4");
  for (const uint32_t ranks : {0, 1, 12, 32}) {
    EXPECT_EQ(refusal(topology::bigraph(2, 8, {}), ranks),
              absl::StrCat("HDRM needs a power of two of ranks, from 2 to 16 on this BiGraph; there are ", ranks));
  }
}

}  // namespace
}  // namespace gleaner::ranks
