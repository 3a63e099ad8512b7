// Tests of the output of `gleaner topology` for a cluster.
#include "cli/cluster/topology_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "cli/cluster/node_network.h"

namespace gleaner::cli {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

api::NodeProfile profile(const std::string& node, double bits_per_second) {
  api::NodeProfile profile;
  profile.meta.name = node;
  profile.status.bits_per_second = bits_per_second;
  return profile;
}

// Two racks in zone a, one rack in no zone, and a node in no group.
api::Topology small_cluster() {
  api::Topology topology;
  topology.status.node_count = 8;
  const std::string zone = "topology.kubernetes.io/zone", rack = "topology.kubernetes.io/rack";
  topology.status.groups = {{"a", zone, "", {}, 5, 200e9, api::UplinkSource::kStated},
                            {"a/r1", rack, "a", {"n1", "n2", "n3"}, 3, 25e9, api::UplinkSource::kStated},
                            {"a/r2#2", rack, "a", {"n4", "n5"}, 2},
                            {"r9", rack, "", {"n6", "n7"}, 2, 9e9, api::UplinkSource::kProbes}};
  topology.status.groups[0].latency_seconds = 43e-6;
  topology.status.groups[1].latency_seconds = 2.1e-5;
  topology.status.latency_seconds = 0.51e-3;
  topology.status.conditions = {
      {"Ready", true, "Labels", "4 groups of 8 nodes by labels"},
      {"UplinksKnown", false, "Assumed", "the uplinks of a/r2#2 are taken to carry all that their nodes send"}};
  return topology;
}

TEST(ClusterTopology, IsATreeOfGroups) {
  const std::vector<api::NodeProfile> profiles = {profile("n1", 10e9), profile("n2", 25e9), profile("n3", 0),
                                                  profile("n4", 10e9), profile("n5", 10e9), profile("n8", 1e9)};
  EXPECT_EQ(topology_text(small_cluster(), profiles),
            R"(GROUP           LEVEL   NODES   LINK OF A NODE                      LATENCY   UPLINK
all nodes       -       8       1 Gbit/s .. 25 Gbit/s, 3 unknown    510 us    -
  a             zone    5       10 Gbit/s .. 25 Gbit/s, 1 unknown   43 us     200 Gbit/s, stated
    r1          rack    3       10 Gbit/s .. 25 Gbit/s, 1 unknown   21 us     25 Gbit/s, stated
    r2#2        rack    2       10 Gbit/s                           unknown   assumed to carry all
  r9            rack    2       unknown                             unknown   9 Gbit/s, probes
  in no group   -       1       1 Gbit/s                            -         -

UplinksKnown is False, since the uplinks of a/r2#2 are taken to carry all that their nodes send.
To state uplinks, run `kubectl edit topologies.gleaner.dev cluster` and write, for example:

  spec:
    uplinks:
    - level: topology.kubernetes.io/rack
      group: "r2"
      bandwidth: 100Gbit
)");
}

TEST(ClusterTopology, WithoutLabelsGivesAdvice) {
  api::Topology topology;
  topology.status.node_count = 3;
  topology.status.conditions = {{"Ready", false, "NoLabels", "no label tells the 3 nodes apart"},
                                {"UplinksKnown", true, "Stated", ""}};
  const std::string text = topology_text(topology, std::vector<api::NodeProfile>());
  EXPECT_THAT(text, AllOf(HasSubstr("\nReady is False, since no label tells the 3 nodes apart.\nTo tell nodes apart, "
                                    "run `kubectl label node NODE topology.kubernetes.io/rack=RACK`"),
                          Not(HasSubstr("in no group")), Not(HasSubstr("UplinksKnown"))));
  topology.status.conditions[1] = {"UplinksKnown", false, "NoSuchGroup", "there is no such group of nodes"};
  EXPECT_THAT(topology_text(topology, std::vector<api::NodeProfile>()),
              EndsWith("run `kubectl edit topologies.gleaner.dev cluster`.\n"));
}

TEST(ClusterTopology, WithoutProfilesLinksAreUnknown) {
  EXPECT_THAT(topology_text(small_cluster(), absl::PermissionDeniedError("no access: nodeprofiles is forbidden")),
              AllOf(HasSubstr("  8       unknown          510 us    -\n"),
                    HasSubstr("since NodeProfiles can't be read: no access: nodeprofiles is forbidden.\n")));
}

// Two racks, and a node in none.
api::Topology two_racks() {
  api::Topology topology;
  topology.status.node_count = 5;
  topology.status.groups = {{"r1", "rack", "", {"n1", "n2"}, 2, 5e9, api::UplinkSource::kStated},
                            {"r2", "rack", "", {"n3", "n4"}, 2}};
  return topology;
}

TEST(NodeNetwork, HasTheGroupsAndTheSpeedsOfNodes) {
  const auto made = network_of_nodes(
      two_racks(), {"n5", "n1", "n2", "n3", "n4"},
      {profile("n1", 10e9), profile("n2", 10e9), profile("n3", 25e9), profile("n4", 40e9), profile("n5", 1e9)});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->assumption, "");
  const topology::Topology& network = made->network;
  std::vector<std::string> links;
  for (const topology::Link& link : network.links()) {
    links.push_back(network.name(link.a) + " - " + network.name(link.b) + " " +
                    std::to_string(static_cast<int>(link.bits_per_second / 1e9)));
  }
  EXPECT_THAT(links, testing::UnorderedElementsAre("n1 - r1 10", "n2 - r1 10", "n3 - r2 25", "n4 - r2 40",
                                                   "n5 - core 1", "r1 - core 5", "r2 - core 65"));
  EXPECT_EQ(network.hosts().front().name, "n1");
}

TEST(NodeNetwork, HasTheLatenciesOfTheTopology) {
  api::Topology topology = two_racks();
  topology.status.latency_seconds = 100e-6;
  topology.status.groups[0].latency_seconds = 20e-6;
  const auto made = network_of_nodes(topology, {"n1", "n2", "n3", "n4"}, {});
  ASSERT_TRUE(made.ok()) << made.status();
  std::map<std::string, double> latencies;
  for (const topology::Link& link : made->network.links()) latencies[made->network.name(link.a)] = link.latency_seconds;
  EXPECT_EQ(latencies, (std::map<std::string, double>{
                           {"n1", 10e-6}, {"n2", 10e-6}, {"r1", 40e-6}, {"n3", 50e-6}, {"n4", 50e-6}, {"r2", 0}}));
}

TEST(NodeNetwork, NamesNodesOfUnknownSpeed) {
  const std::vector<std::string> nodes = {"n1", "n2", "n3", "n4", "n5"};
  const auto some =
      network_of_nodes(two_racks(), nodes, {profile("n1", 1e9), profile("n2", 40e9), profile("n3", 25e9)});
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_THAT(some->assumption, HasSubstr("the network speed of n4, n5 is unknown and taken to be 25 Gbit/s, the "
                                          "median of the other nodes; label these nodes gleaner.dev/bandwidth=25Gbit"));
  const auto none = network_of_nodes(two_racks(), nodes, {});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(none->assumption, HasSubstr("n1, n2, n3, n4, n5 is unknown and taken to be 10 Gbit/s; label"));
  EXPECT_EQ(network_of_nodes(two_racks(), {}, {}).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace gleaner::cli
