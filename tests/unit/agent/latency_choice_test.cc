// Tests which peers an agent measures, in which round, and at which pace.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "agent/probe/choose_peers.h"
#include "agent/probe/latency_packet.h"
#include "agent/probe/latency_table.h"
#include "agent/probe/measurement.h"
#include "agent/probe/pace.h"
#include "agent/probe/rounds.h"
#include "common/fabric/near_nodes.h"
#include "common/ranks/random.h"

namespace gleaner::probe {
namespace {

using testing::ElementsAre;

TEST(Rounds, FollowTheWallClock) {
  const absl::Time now = absl::FromUnixSeconds(1000);
  EXPECT_EQ(round_at(now, absl::Seconds(30)), 33);
  EXPECT_EQ(start_of_round(33, absl::Seconds(30)), absl::FromUnixSeconds(990));
  EXPECT_EQ(round_at(absl::FromUnixSeconds(-1), absl::Seconds(30)), -1) << "a clock may be wrong";
}

TEST(Rounds, PassHasEachPairOnceBothWays) {
  for (const size_t count : {2, 3, 8, 65}) {
    std::set<std::pair<size_t, size_t>> asked;
    for (int64_t round = 1000; round < 1000 + static_cast<int64_t>(count) - 1; ++round) {
      std::set<size_t> answering;
      for (size_t self = 0; self < count; ++self) {
        const size_t peer = peer_in_round(round, self, count);
        EXPECT_NE(peer, self);
        EXPECT_TRUE(answering.insert(peer).second) << "each agent answers one other";
        EXPECT_TRUE(asked.insert({self, peer}).second);
      }
    }
    EXPECT_EQ(asked.size(), count * (count - 1));
  }
  EXPECT_NE(peer_in_round(-7, 1, 3), 1U);
}

TEST(Rounds, OrderIsTheSameForAllAgents) {
  const std::vector<std::string> hosts = {"10.0.0.9", "10.0.0.10", "10.0.0.9"};
  const AgentOrder order = in_order(hosts, "10.0.0.9");
  EXPECT_THAT(order.hosts, ElementsAre("10.0.0.10", "10.0.0.9"));
  EXPECT_EQ(order.self, 1U);
  EXPECT_EQ(in_order(hosts, "10.0.0.10").hosts, order.hosts);
  EXPECT_THAT(in_order({"b"}, "a").hosts, ElementsAre("a", "b")) << "an agent that is not listed yet";
}

TEST(Pace, FollowsFromTheBandwidth) {
  EXPECT_EQ(pace_for(10e9), (Pace{kLeastPause, kQuestions}));
  for (const double speed : {0.0, 1e6, 10e6, 100e6, 1e9}) {
    const Pace pace = pace_for(speed);
    const double bits = 8 * 2 * (sizeof(LatencyPacket) + 62);
    EXPECT_LE(bits / absl::ToDoubleSeconds(pace.pause), 0.001 * (speed > 0 ? speed : 10e6) * 1.000001);
    EXPECT_LE(pace.questions * pace.pause, std::max(kAskingTime, pace.pause));
    EXPECT_GE(pace.questions, 1U);
  }
  EXPECT_EQ(pace_for(0), pace_for(10e6));
  EXPECT_EQ(pace_for(0).questions, 47U);
}

TEST(Pace, RenewalBoundsQuestionsPerHour) {
  for (size_t peers = 1; peers <= kMostPeers; ++peers) EXPECT_LE(questions_per_hour(peers), 300.001);
  EXPECT_EQ(renewal_period(1), absl::Hours(1));
  EXPECT_LT(2 * renewal_period(kMostPeers), absl::Hours(48)) << "else entries are forgotten before they are renewed";
}

TEST(Measurement, RoundTripIsTheTenthPercentile) {
  Measurement measurement{.asked = 101};
  for (int i = 100; i > 0; --i) measurement.round_trips.push_back(absl::Microseconds(i));
  EXPECT_EQ(measurement.round_trip(), absl::Microseconds(11));
  EXPECT_EQ(measurement.lost_percent(), 1U) << "one of 101 is not nothing";
  measurement.round_trips = {absl::Microseconds(7)};
  EXPECT_EQ(measurement.round_trip(), absl::Microseconds(7));
  EXPECT_EQ(measurement.lost_percent(), 100U);
}

// A cluster whose nodes are in groups of equal size.
class ChoosePeers : public testing::Test {
 protected:
  void make(size_t nodes, size_t per_group) {
    for (size_t i = 0; i < nodes; ++i) {
      hosts_.push_back(absl::StrCat("10.", i / 100, ".0.", 100 + i % 100));
      node_of_[hosts_.back()] = absl::StrCat("n", i);
      group_of_[absl::StrCat("n", i)] = absl::StrCat("g", i / per_group);
    }
  }
  AgentOrder agent(const std::string& host) const { return in_order(hosts_, host); }
  std::string group(const std::string& host) const { return group_of_.at(node_of_.at(host)); }
  // Returns the hosts that this one measures.
  std::set<std::string> measured(const std::string& host) const {
    const AgentOrder agents = agent(host);
    const std::vector<Need> needs = choose_peers(agents, node_of_, group_of_);
    std::set<std::string> found;
    for (size_t i = 0; i < needs.size(); ++i) {
      if (needs[i] == Need::kLatency) found.insert(agents.hosts[i]);
    }
    return found;
  }

  std::vector<std::string> hosts_;
  Texts node_of_, group_of_;
};

TEST_F(ChoosePeers, SmallClusterIsMeasuredWhole) {
  make(kMostPeers + 1, 5);
  EXPECT_EQ(measured(hosts_[7]).size(), kMostPeers);
  EXPECT_FALSE(measured(hosts_[7]).contains(hosts_[7]));
  node_of_.clear();
  EXPECT_EQ(measured(hosts_[7]).size(), kMostPeers) << "names do not matter";
}

TEST_F(ChoosePeers, LargeClusterIsMeasuredByGroups) {
  make(1000, 20);
  double questions = 0;
  std::set<std::set<std::string>> pairs;           // of groups
  for (size_t i = 0; i < hosts_.size(); i += 4) {  // five agents of each group, to save time
    const std::string& host = hosts_[i];
    const std::set<std::string> peers = measured(host);
    EXPECT_EQ(peers.size(), kMostPeers);
    std::set<std::string> others;
    for (const std::string& peer : peers) {
      if (group(peer) != group(host)) others.insert(group(peer)), pairs.insert({group(host), group(peer)});
    }
    EXPECT_EQ(others.size(), kMostPeers - 19) << "all 19 of its own group, and one each of 45 other groups";
    questions += 4 * questions_per_hour(peers.size());
  }
  EXPECT_EQ(pairs.size(), 50 * 49 / 2) << "each two groups are measured";
  EXPECT_NEAR(questions, 300'000, 1);
  const double hours = absl::ToDoubleHours(999 * kRoundTime);
  EXPECT_LT(1000 * (kMostPeers * kQuestions + 999 - kMostPeers) / hours, 900'000) << "in a first pass";
}

TEST_F(ChoosePeers, LargeGroupLeavesPlaceForOthers) {
  make(200, 100);
  const std::set<std::string> peers = measured(hosts_[0]);
  EXPECT_EQ(peers.size(), kMostPeers);
  EXPECT_EQ(std::ranges::count_if(peers, [&](const std::string& peer) { return group(peer) != "g0"; }),
            static_cast<int>(kLeastAcross));
}

TEST_F(ChoosePeers, MostChoicesAreMutual) {
  make(200, 100);
  size_t mutual = 0;
  for (const std::string& peer : measured(hosts_[0])) mutual += measured(peer).contains(hosts_[0]) ? 1 : 0;
  EXPECT_GT(mutual, kMostPeers / 2);
}

TEST_F(ChoosePeers, ANodeInNoGroupMeasuresSomeOfEachGroup) {
  make(200, 5);
  group_of_.erase("n0");
  std::set<std::string> groups;
  for (const std::string& peer : measured(hosts_[0])) groups.insert(group(peer));
  EXPECT_EQ(groups.size(), 40U);
}

TEST_F(ChoosePeers, GroupsInTheSameZoneComeFirst) {
  make(600, 5);
  for (auto& [node, rack] : group_of_) rack = absl::StrCat(std::stoi(node.substr(1)) < 400 ? "a/" : "b/", rack);
  size_t same = 0;
  for (const std::string& peer : measured(hosts_[0])) same += group(peer)[0] == 'a' ? 1 : 0;
  EXPECT_EQ(same, 4U + 45U) << "of 64, those of its own group, and three quarters of the rest";
}

TEST_F(ChoosePeers, UnknownNodesAreNamedFirst) {
  make(100, 10);
  node_of_.erase(hosts_[50]);
  const AgentOrder agents = agent(hosts_[0]);
  const auto place = [&](const std::string& host) {
    return std::ranges::find(agents.hosts, host) - agents.hosts.begin();
  };
  EXPECT_EQ(choose_peers(agents, node_of_, group_of_)[place(hosts_[50])], Need::kName);
  group_of_.clear();
  EXPECT_EQ(measured(hosts_[0]).size(), kMostPeers) << "without groups, any 64";
  EXPECT_EQ(std::ranges::count(choose_peers(agents, node_of_, group_of_), Need::kName), 0);
}

// The groups that the operator finds of latencies tell the agents whose latencies to measure next. So groups that no
// label tells are found in passes, though each agent measures few others.
TEST(Groups, AreFoundInPassesWithoutLabels) {
  constexpr size_t kNodes = 512, kPerRack = 16;
  std::vector<std::string> hosts;
  Texts node_of, group_of;
  std::vector<fabric::LabelledNode> nodes;
  std::vector<std::shared_ptr<api::NodeProfile>> written;
  fabric::Profiles profiles;
  for (size_t i = 0; i < kNodes; ++i) {
    hosts.push_back(absl::StrCat("10.0.", 100 + i / 100, ".", 100 + i % 100));  // places agree with numbers
    nodes.push_back({absl::StrCat("n", 1000 + i), {}, {}});
    node_of[hosts.back()] = nodes.back().name;
    written.push_back(std::make_shared<api::NodeProfile>());
    profiles[nodes.back().name] = written.back();
  }
  ranks::Random random(1);
  std::set<std::set<size_t>> racks;
  int passes = 0;
  for (; racks.size() != kNodes / kPerRack && passes < 4; ++passes) {
    const absl::Time now = absl::UnixEpoch() + passes * kNodes * kRoundTime;
    for (size_t i = 0; i < kNodes; ++i) {
      LatencyTable table;
      for (const api::PeerLatency& peer : written[i]->status.peers) table.put(peer);
      const std::vector<Need> needs = choose_peers({hosts, i}, node_of, group_of);
      for (size_t j = 0; j < kNodes; ++j) {
        if (needs[j] != Need::kLatency) continue;
        const double usual = i / kPerRack == j / kPerRack ? 40 : 60;
        table.put({nodes[j].name, absl::Microseconds(usual * std::exp(0.05 * random.normal())), 0, now});
      }
      written[i]->status.peers = table.entries();
    }
    group_of = fabric::find_near_nodes(nodes, profiles, group_of, now).group_of;
    std::map<std::string, std::set<size_t>> members;
    for (size_t i = 0; i < kNodes; ++i) {
      if (const auto group = group_of.find(nodes[i].name); group != group_of.end()) members[group->second].insert(i);
    }
    racks.clear();
    for (const auto& [name, group] : members) racks.insert(group);
  }
  EXPECT_EQ(racks.size(), kNodes / kPerRack);
  for (const std::set<size_t>& rack : racks) {
    EXPECT_EQ(rack.size(), kPerRack);
    EXPECT_EQ(*rack.begin() / kPerRack, *rack.rbegin() / kPerRack);
  }
  EXPECT_LE(passes, 2);
}

TEST(GroupOfNodes, IsTheSmallestGroup) {
  api::TopologyStatus topology;
  topology.groups = {{.name = "zone-a", .nodes = {"n0"}}, {.name = "zone-a/rack-1", .nodes = {"n1", "n2"}}};
  const Texts group_of = group_of_nodes(topology);
  EXPECT_EQ(group_of.at("n0"), "zone-a");
  EXPECT_EQ(group_of.at("n2"), "zone-a/rack-1");
  EXPECT_EQ(group_of.size(), 3U);
}

}  // namespace
}  // namespace gleaner::probe
