// Tests to which nodes an agent measures the bandwidth, when, and for which share of time.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "agent/probe/bandwidth_turns.h"
#include "agent/probe/load_budget.h"
#include "agent/probe/measure.h"
#include "agent/probe/representatives.h"
#include "tests/manual_clock.h"

namespace gleaner::probe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Zones with racks of five nodes, whose agents are all known.
class Representatives : public testing::Test {
 protected:
  void make(int zones, int racks) {
    for (int zone = 0; zone < zones; ++zone) {
      for (int rack = 0; rack < racks; ++rack) {
        api::TopologyGroup& group = topology_.groups.emplace_back();
        group.parent = absl::StrCat("z", zone);
        group.name = absl::StrCat(group.parent, "/r", rack);
        for (int i = 0; i < 5; ++i) {
          group.nodes.push_back(absl::StrCat("n", zone, "-", rack, "-", i));
          host_of_[group.nodes.back()] = "10.0.0.1";
          group_of_[group.nodes.back()] = group.name;
        }
      }
    }
  }
  std::vector<std::string> peers(const std::string& node) const { return bandwidth_peers(topology_, host_of_, node); }
  // Returns the nodes of a group that measure.
  std::vector<std::string> measuring(const api::TopologyGroup& group) const {
    std::vector<std::string> found;
    for (const std::string& node : group.nodes) {
      if (!peers(node).empty()) found.push_back(node);
    }
    return found;
  }

  api::TopologyStatus topology_;
  Texts host_of_;
  std::map<std::string, std::string> group_of_;
};

TEST_F(Representatives, ThreeOfEachGroupMeasure) {
  make(1, 4);
  for (const api::TopologyGroup& group : topology_.groups) {
    const std::vector<std::string> few = measuring(group);
    EXPECT_EQ(few.size(), kRepresentatives);
    std::set<std::string> ends;  // of all pairs of the group
    for (const std::string& node : few) {
      const std::vector<std::string> chosen = peers(node);
      EXPECT_EQ(chosen.size(), 1U + 3U) << "one of its own group, and one of each other";
      EXPECT_EQ(group_of_[chosen.front()], group.name);
      EXPECT_NE(chosen.front(), node);
      ends.insert(chosen.begin(), chosen.end());
    }
    EXPECT_EQ(ends.size(), 4 * kRepresentatives) << "no two pairs have the same end";
  }
}

TEST_F(Representatives, SiblingsComeFirst) {
  make(3, 20);
  std::map<std::string, int> by_parent;
  for (const std::string& peer : peers(measuring(topology_.groups[0])[0])) ++by_parent[group_of_[peer].substr(0, 2)];
  EXPECT_EQ(by_parent["z0"], 1 + static_cast<int>(kMostGroups - kLeastOthers));
  EXPECT_EQ(by_parent["z1"] + by_parent["z2"], static_cast<int>(kLeastOthers)) << "else zones' uplinks are not seen";
}

TEST_F(Representatives, LoneGroupOfAParentMeasuresOthers) {
  make(12, 1);
  EXPECT_EQ(peers(measuring(topology_.groups[0])[0]).size(), 1 + kMostGroups);
}

TEST_F(Representatives, AgentsThatComeAndGoLeaveOthers) {
  make(1, 2);
  const std::vector<std::string> before = measuring(topology_.groups[0]);
  topology_.groups[0].nodes.emplace_back("without-agent");
  EXPECT_EQ(measuring(topology_.groups[0]), before);
  host_of_.erase(before[1]);
  const std::vector<std::string> after = measuring(topology_.groups[0]);
  EXPECT_EQ(after.size(), kRepresentatives);
  EXPECT_THAT(after, testing::IsSupersetOf({before[0], before[2]}));
}

TEST_F(Representatives, NodesInNoGroupMeasureNothing) {
  make(1, 2);
  host_of_["alone"] = "10.0.0.2";
  EXPECT_THAT(peers("alone"), IsEmpty());
  topology_.groups.clear();
  EXPECT_THAT(peers("n0-0-0"), IsEmpty());
}

class BandwidthTurnsTest : public testing::Test {
 protected:
  BandwidthTurnsTest() { turns_.set_peers({"a", "b"}, {"a", "b", "old"}); }
  void pass(absl::Duration time) {
    now_.wall += time;
    now_.monotonic += time;
  }
  std::vector<double> rates() const {
    std::vector<double> found;
    for (const api::PeerBandwidth& entry : turns_.entries()) found.push_back(entry.bits_per_second);
    return found;
  }

  BandwidthTurns turns_;
  BandwidthTurns::Now now_{absl::FromUnixSeconds(1'769'860'800), absl::Seconds(5)};
};

TEST_F(BandwidthTurnsTest, MissingPeersThenOldestEntry) {
  EXPECT_EQ(turns_.next(now_), "a");
  turns_.succeeded("a", 1e9, now_.wall);
  pass(absl::Minutes(7));
  EXPECT_EQ(turns_.next(now_), "b");
  turns_.succeeded("b", 2e9, now_.wall);
  EXPECT_EQ(turns_.next(now_), std::nullopt);
  pass(BandwidthTurns::kRenewal);
  EXPECT_EQ(turns_.next(now_), "a");
  EXPECT_EQ(turns_.coverage(now_.wall).oldest, BandwidthTurns::kRenewal + absl::Minutes(7));
}

TEST_F(BandwidthTurnsTest, EntryIsTheGreatestOfThree) {
  for (const double rate : {4e9, 3e9, 1e9}) turns_.succeeded("a", rate, now_.wall);
  EXPECT_THAT(rates(), ElementsAre(4e9));
  pass(absl::Hours(1));
  turns_.succeeded("a", 2e9, now_.wall);
  EXPECT_THAT(rates(), ElementsAre(3e9));
  EXPECT_EQ(turns_.entries()[0].observed_time, now_.wall);
}

TEST_F(BandwidthTurnsTest, FailuresBackOff) {
  turns_.succeeded("b", 1e9, now_.wall);
  for (const int64_t minutes : {10, 20, 40, 80, 160, 240, 240}) {
    turns_.failed("a", now_.monotonic);
    now_.monotonic += absl::Minutes(minutes) - absl::Nanoseconds(1);
    EXPECT_EQ(turns_.next(now_), std::nullopt) << minutes;
    now_.monotonic += absl::Nanoseconds(1);
    EXPECT_EQ(turns_.next(now_), "a") << minutes;
  }
  turns_.succeeded("a", 1e9, now_.wall - BandwidthTurns::kRenewal);
  EXPECT_EQ(turns_.next(now_), "a") << "a success ends the backoff";
}

TEST_F(BandwidthTurnsTest, EntriesEndWithAgeAndGroups) {
  turns_.restore({{"old", 1e9, now_.wall - absl::Hours(47)}, {"gone", 1e9, now_.wall}, {"a", 2e9, now_.wall}});
  EXPECT_EQ(turns_.entries().size(), 3U);
  turns_.set_peers({"a", "b"}, {"a", "b", "old"});
  EXPECT_THAT(rates(), ElementsAre(2e9, 1e9)) << "gone is in no group";
  EXPECT_EQ(turns_.coverage(now_.wall).missing, 1U);
  pass(absl::Hours(2));
  EXPECT_EQ(turns_.next(now_), "b");
  EXPECT_THAT(rates(), ElementsAre(2e9)) << "two days are over";
}

TEST_F(BandwidthTurnsTest, EntryFromTheFutureIsDue) {
  turns_.restore({{"a", 1e9, now_.wall + absl::Hours(1)}, {"b", 1e9, now_.wall}});
  EXPECT_EQ(turns_.next(now_), "a");
}

TEST_F(BandwidthTurnsTest, LatestEntriesAreReported) {
  for (size_t i = 0; i < 2 * kMostBandwidths; ++i) {
    turns_.succeeded(absl::StrCat("n", 1000 + i), 1e9, now_.wall + absl::Seconds(static_cast<int64_t>(i)));
  }
  EXPECT_EQ(turns_.entries().size(), kMostBandwidths);
  EXPECT_EQ(turns_.entries().front().node, absl::StrCat("n", 1000 + kMostBandwidths));
}

// A NIC of 1 Gbit/s that nobody uses.
class LoadBudgetTest : public testing::Test {
 protected:
  LoadBudgetTest() { budget_.set_nic(1e9, 0); }
  void load(absl::Duration time) {
    const LoadBudget::Load load(&budget_, clock_);
    clock_.advance(time);
  }
  bool allows() const { return budget_.allows(clock_.since_start()); }

  ManualClock clock_;
  LoadBudget budget_;
};

TEST_F(LoadBudgetTest, LoadsTakeAThousandthOfTheTime) {
  EXPECT_TRUE(allows());
  const absl::Duration begin = clock_.since_start();
  for (int i = 1; i <= 5; ++i) {
    load(2 * kLoadTime);
    clock_.advance(begin + i * absl::Seconds(400) - clock_.since_start() - absl::Nanoseconds(1));
    EXPECT_FALSE(allows());
    clock_.advance(absl::Nanoseconds(1));
    EXPECT_TRUE(allows());
  }
}

TEST_F(LoadBudgetTest, LoadsThatDoNotWaitAddUp) {
  const absl::Duration begin = clock_.since_start();
  load(2 * kLoadTime);
  load(kLoadTime);
  clock_.advance(begin + absl::Seconds(600) - clock_.since_start() - absl::Nanoseconds(1));
  EXPECT_FALSE(allows());
  clock_.advance(absl::Nanoseconds(1));
  EXPECT_TRUE(allows());
}

TEST_F(LoadBudgetTest, OneLoadAtATime) {
  const LoadBudget::Load load(&budget_, clock_);
  EXPECT_FALSE(allows());
}

TEST_F(LoadBudgetTest, NicInUseIsLeftAlone) {
  budget_.set_nic(1e9, 0.21e9);
  EXPECT_FALSE(allows());
  budget_.set_nic(1e9, 0.2e9);
  EXPECT_TRUE(allows());
  budget_.set_nic(0, 0);
  EXPECT_FALSE(allows()) << "the speed is unknown, so its use is, too";
}

}  // namespace
}  // namespace gleaner::probe
