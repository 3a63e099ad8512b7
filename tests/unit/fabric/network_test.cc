#include "common/fabric/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "common/fabric/group_tree.h"
#include "common/topology/paths.h"
#include "tests/unit/fabric/cluster.h"

namespace gleaner::fabric {
namespace {

using testing::ElementsAre;

std::vector<std::vector<uint32_t>> order(const Fabric& fabric, const std::vector<std::string>& nodes) {
  std::vector<std::vector<uint32_t>> hosts;
  for (const HostGroup& group : near_first(tree_of(fabric, nodes))) hosts.push_back(group.hosts);
  return hosts;
}

TEST(NearFirst, HostsOfAGroupAreConsecutive) {
  const Fabric fabric = small_cluster();
  EXPECT_THAT(order(fabric, {"n1", "n3", "n2", "n4"}), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
  // Racks of one zone are together, although a worker of another zone has a lower index.
  EXPECT_THAT(order(fabric, {"n3", "n5", "n1", "n7"}), ElementsAre(ElementsAre(0), ElementsAre(2), ElementsAre(1, 3)));
  EXPECT_THAT(order(fabric, {"n6", "n3", "unknown", "n4"}), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
}

TEST(NearFirst, HostsOfOneGroupAreOneEntry) {
  const Fabric fabric = small_cluster();
  EXPECT_THAT(order(fabric, {"n2", "n1"}), ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(order(fabric, {"n1", "n1"}), ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(order(Fabric(), {"x", "y"}), ElementsAre(ElementsAre(0, 1)));
}

TEST(NetworkOf, NamesOfGroupsMayOccurTwice) {
  const api::TopologyGroup core{"core", "rack", "", {"n1", "n2"}, 2}, other{"core", "rack", "", {"n3", "n4"}, 2};
  const auto network = network_of(Fabric::of_status({4, {core, other}, {}}),
                                  std::vector<Host>{{"w0", "n1", 1e9}, {"w1", "n3", 1e9}, {"w2", "n2", 1e9}});
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ(network->switches().size(), 3u);
}

TEST(NetworkOf, GroupsThatDivideTheHostsAreSwitches) {
  const Fabric fabric = small_cluster({{"rack", "r1", 5e9}});
  const auto network =
      network_of(fabric, std::vector<Host>{{"w0", "n1", 10e9}, {"w1", "n3", 10e9}, {"w2", "n2", 20e9}});
  ASSERT_TRUE(network.ok()) << network.status();
  std::vector<std::string> switches;
  for (const auto& each : network->switches()) switches.push_back(each.name);
  EXPECT_THAT(switches, ElementsAre("core", "a/r1", "a/r2"));  // zone a has all hosts
  ASSERT_EQ(network->links().size(), 5u);
  const auto uplink = [&](const std::string& name) {
    for (const auto& link : network->links()) {
      if (network->name(link.a) == name) return link.bits_per_second;
    }
    return 0.0;
  };
  EXPECT_EQ(uplink("a/r1"), 5e9);   // as stated, although its hosts send 30 Gbit/s
  EXPECT_EQ(uplink("a/r2"), 10e9);  // unknown, so as much as its host sends
  EXPECT_EQ(uplink("w2"), 20e9);
}

TEST(NetworkOf, SlowestUplinkOfNestedGroupsCounts) {
  const Fabric fabric = small_cluster({{"zone", "a", 1e9}, {"rack", "r1", 5e9}});
  const auto network = network_of(fabric, std::vector<Host>{{"w0", "n1", 10e9}, {"w1", "n5", 10e9}});
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ(network->switches().size(), 3u);  // the core and one for each zone
  const auto& links = network->links();
  const auto found = std::ranges::find_if(links, [&](const auto& link) { return network->name(link.a) == "a"; });
  ASSERT_NE(found, links.end());
  EXPECT_EQ(found->bits_per_second, 1e9);
}

// Returns the latency of the path between two hosts.
double latency(const topology::Topology& made, uint32_t from, uint32_t to) {
  std::vector<uint32_t> channels;
  topology::Paths(made).append_path(from, to, 0, channels);
  double sum = 0;
  for (const uint32_t channel : channels) sum += made.latency_seconds(channel);
  return sum;
}

// `of_groups`: of a, a/r1, a/r2 and b.
topology::Topology with_latencies(const std::vector<double>& of_groups, double core,
                                  const std::vector<std::string>& nodes) {
  Fabric fabric = small_cluster();
  fabric.set_latencies(of_groups, core);
  std::vector<Host> hosts;
  for (const std::string& node : nodes) hosts.push_back({"on " + node, node, 1e9});
  return *network_of(fabric, hosts);
}

TEST(NetworkOf, PathsHaveTheLatenciesOfTheSmallestCommonGroups) {
  const auto made = with_latencies({40e-6, 11e-6, 13e-6, 17e-6}, 99e-6, {"n1", "n2", "n3", "n4", "n5", "n7", "n6"});
  const auto expect = [&](uint32_t from, uint32_t to, double seconds) {
    EXPECT_NEAR(latency(made, from, to), seconds, 1e-12) << from << " to " << to;
  };
  expect(0, 1, 11e-6);
  expect(2, 3, 13e-6);
  expect(0, 2, 40e-6);
  expect(4, 5, 17e-6);
  expect(1, 4, 99e-6);
  expect(3, 6, 99e-6);
}

TEST(NetworkOf, NarrowestOfGroupsWithTheSameHostsTellsTheLatency) {
  const auto one_rack = with_latencies({40e-6, 11e-6, 13e-6, 17e-6}, 99e-6, {"n1", "n2", "n5"});
  EXPECT_NEAR(latency(one_rack, 0, 1), 11e-6, 1e-12) << "a and a/r1 are one branch";
  EXPECT_NEAR(latency(one_rack, 0, 2), 99e-6, 1e-12);
  EXPECT_NEAR(latency(with_latencies({40e-6, 11e-6, 13e-6, 17e-6}, 99e-6, {"n1", "n3"}), 0, 1), 40e-6, 1e-12)
      << "a has all hosts";
}

TEST(NetworkOf, UnknownLatenciesAreThoseOfTheNearestKnownGroup) {
  const std::vector<std::string> nodes = {"n1", "n2", "n3", "n5", "n7"};
  const auto wider = with_latencies({40e-6, 0, 0, 0}, 99e-6, nodes);
  EXPECT_NEAR(latency(wider, 0, 1), 40e-6, 1e-12);
  EXPECT_NEAR(latency(wider, 3, 4), 99e-6, 1e-12);
  const auto narrower = with_latencies({0, 11e-6, 0, 0}, 0, nodes);
  EXPECT_NEAR(latency(narrower, 0, 2), 11e-6, 1e-12);
  EXPECT_NEAR(latency(narrower, 3, 4), 11e-6, 1e-12) << "that of the core, which is that of a/r1";
  const auto unknown = with_latencies({0, 0, 0, 0}, 0, nodes);
  for (const topology::Link& link : unknown.links()) EXPECT_EQ(link.latency_seconds, kLinkLatencySeconds);
}

TEST(NetworkOf, NoUplinkHasANegativeLatency) {
  const auto made = with_latencies({40e-6, 60e-6, 13e-6, 17e-6}, 30e-6, {"n1", "n3", "n5"});
  EXPECT_NEAR(latency(made, 0, 1), 50e-6, 1e-12);  // halves of 60 and 40 us
}

TEST(NetworkOf, FurtherHostsHaveTheLatencyOfTheirSwitch) {
  Fabric fabric = small_cluster();
  fabric.set_latencies(std::vector<double>{40e-6, 11e-6, 13e-6, 17e-6}, 99e-6);
  const std::vector<Host> hosts = {{"w0", "n1", 1e9}, {"w1", "n3", 1e9}, {"w2", "n5", 1e9}};
  // The core, a, a/r1, a/r2, b.
  EXPECT_THAT(latencies_at_switches(fabric, hosts), ElementsAre(49.5e-6, 20e-6, 5.5e-6, 6.5e-6, 8.5e-6));
}

TEST(NetworkOf, UnknownUplinksCarryPlenty) {
  const Fabric racks = Fabric::of_labels({{"n0", {"a"}}, {"n1", {"a"}}, {"n2", {"b"}}, {"n3", {"b"}}}, {{"rack"}}, {});
  const std::vector<Host> hosts = {{"h0", "n0", 10e9}, {"h1", "n1", 10e9}, {"h2", "n2", 10e9}, {"h3", "n3", 10e9}};
  for (const double plenty : {1.0, 1000.0}) {
    const topology::Topology network = network_of(racks, hosts, plenty).value();
    for (const topology::Link& link : network.links()) {
      EXPECT_EQ(link.bits_per_second, network.is_host(link.a) ? 10e9 : plenty * 20e9);
    }
  }
}

TEST(NetworkOf, HostMayHaveTheNameOfAGroup) {
  EXPECT_TRUE(network_of(small_cluster(), std::vector<Host>{{"a/r1", "n1", 1e9}, {"core", "n3", 1e9}}).ok());
  EXPECT_FALSE(network_of(small_cluster(), std::vector<Host>{{"w", "n1", 1e9}, {"w", "n3", 1e9}}).ok());
}

TEST(SwitchOf, HostsAreWhereTheNetworkHasThem) {
  const Fabric fabric = small_cluster();
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<Host> hosts;
    for (uint32_t host = 0; host <= random() % 6; ++host) {
      const std::string node = absl::StrCat("n", 1 + random() % 8);  // n8 is unknown
      hosts.push_back({random() % 2 == 0 ? absl::StrCat("w", host) : absl::StrCat("a/r", host), node, 1e9});
    }
    const topology::Topology network = *network_of(fabric, hosts);
    for (uint32_t host = 0; host < hosts.size(); ++host) {
      EXPECT_EQ(network.only_switch(host)->node,
                network.host_count() + switch_of(network, group_names_of(fabric, hosts[host].node)))
          << i;
    }
  }
}

TEST(SwitchOf, NarrowestBranchCountsForOtherNodes) {
  const Fabric fabric = small_cluster();
  const auto name_at = [&](const std::vector<Host>& hosts, const std::string& node) {
    const topology::Topology network = *network_of(fabric, hosts);
    return network.switches()[switch_of(network, group_names_of(fabric, node))].name;
  };
  const std::vector<Host> racks = {{"w0", "n1", 1e9}, {"w1", "n3", 1e9}};
  EXPECT_EQ(name_at(racks, "n2"), "a/r1");
  EXPECT_EQ(name_at(racks, "n5"), "core") << "no host is in zone b";
  EXPECT_EQ(name_at(racks, "n6"), "core") << "it is in no group";
  const std::vector<Host> zones = {{"w0", "n1", 1e9}, {"w1", "n2", 1e9}, {"w2", "n5", 1e9}};
  EXPECT_EQ(name_at(zones, "n3"), "a") << "no host is in its rack";
  EXPECT_EQ(name_at({{"a/r1", "n1", 1e9}, {"w1", "n3", 1e9}}, "n2"), "a/r1 (group)");
}

}  // namespace
}  // namespace gleaner::fabric
