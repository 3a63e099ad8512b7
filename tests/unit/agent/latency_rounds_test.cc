// Tests the protocol core of latencies, with simulated clocks and peers.
#include "agent/probe/latency_rounds.h"

#include <gmock/gmock.h>

#include <deque>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"

namespace gleaner::probe {
namespace {

constexpr LatencyTimes kTimes;

PeerList list_of(const std::vector<std::string>& hosts, const std::string& own) {
  const AgentOrder agents = in_order(hosts, own);
  return {agents, choose_peers(agents, {}, {})};
}

// The agents of a cluster, whose clocks agree and whose answers arrive at once.
class Fleet {
 public:
  explicit Fleet(size_t size) {
    for (size_t i = 0; i < size; ++i) hosts.push_back(absl::StrCat("h", i));
    for (const std::string& host : hosts) {
      agents.emplace_back(absl::StrCat("node-", host), kTimes).set_peers(list_of(hosts, host));
    }
  }
  void run(absl::Duration time) {
    for (const absl::Time end = now.wall + time; now.wall < end;) {
      asked_now.clear();
      for (size_t i = 0; i < agents.size(); ++i) {
        const std::optional<Question> question = agents[i].next(now);
        if (!question.has_value()) continue;
        EXPECT_TRUE(asked_now.insert(question->host).second) << "two agents ask " << question->host;
        agents[i].answered(absl::StrCat("node-", question->host), absl::Microseconds(20), now);
      }
      now.wall += absl::Milliseconds(50);
      now.monotonic += absl::Milliseconds(50);
    }
  }
  uint64_t sent() const {
    uint64_t sum = 0;
    for (const LatencyRounds& agent : agents) sum += agent.sent();
    return sum;
  }

  std::vector<std::string> hosts;
  std::deque<LatencyRounds> agents;
  std::set<std::string> asked_now;
  LatencyRounds::Now now{absl::FromUnixSeconds(1'769'860'800), absl::Seconds(5)};
};

TEST(LatencyFleet, PassMeasuresAllPairsOneAtATime) {
  Fleet fleet(6);
  fleet.run(5 * kRoundTime);
  for (const LatencyRounds& agent : fleet.agents) {
    EXPECT_EQ(agent.table().entries().size(), 5U);
    EXPECT_EQ(agent.coverage(fleet.now.wall).missing, 0U);
  }
  EXPECT_EQ(fleet.sent(), 6 * 5 * kQuestions);
}

TEST(LatencyFleet, MeasuredPeersRestUntilTheirRenewal) {
  Fleet fleet(3);
  fleet.run(2 * kRoundTime);
  const uint64_t sent = fleet.sent();
  fleet.run(absl::Minutes(50));
  EXPECT_EQ(fleet.sent(), sent);
  fleet.run(absl::Minutes(20));
  EXPECT_EQ(fleet.sent(), 2 * sent);
  EXPECT_LT(fleet.agents[0].coverage(fleet.now.wall).oldest, absl::Minutes(20));
}

// One agent, whose only peer answers as the test says.
class LatencyRoundsTest : public testing::Test {
 protected:
  LatencyRoundsTest() { rounds_.set_peers(list_of({"peer"}, "own")); }
  void pass(absl::Duration time) {
    now_.wall += time;
    now_.monotonic += time;
  }
  // Passes time until a question is due, for the rest of the round at most.
  std::optional<Question> question() {
    const int64_t round = round_at(now_.wall, kRoundTime);
    while (round_at(now_.wall, kRoundTime) == round) {
      if (const std::optional<Question> asked = rounds_.next(now_)) return asked;
      const absl::Duration idle = rounds_.idle(now_);
      EXPECT_GT(idle, absl::ZeroDuration()) << "the thread would not sleep";
      pass(std::max(idle, absl::Milliseconds(1)));
    }
    return std::nullopt;
  }
  void answer(absl::Duration round_trip = absl::Microseconds(20), const std::string& node = "node-peer") {
    rounds_.answered(node, round_trip, now_);
  }
  // Lets the peer answer up to `most` questions of this round. Returns their number.
  int answer_all(int most = 1000) {
    int answers = 0;
    while (answers < most && question().has_value()) answer(), ++answers;
    return answers;
  }

  LatencyRounds rounds_{"node-own", kTimes};
  LatencyRounds::Now now_{start_of_round(59'000'000, kRoundTime), absl::Seconds(5)};
};

TEST_F(LatencyRoundsTest, QuestionsWaitForAnswerAndPause) {
  const absl::Time begin = now_.wall;
  const std::optional<Question> first = question();
  EXPECT_EQ(first->host, "peer");
  EXPECT_EQ(first->sequence, 0);
  EXPECT_EQ(first->round, static_cast<uint16_t>(59'000'000));
  EXPECT_GE(now_.wall - begin, kTimes.silence);
  pass(kLeastPause);
  EXPECT_EQ(rounds_.next(now_), std::nullopt) << "one is in flight";
  answer();
  const absl::Time answered = now_.wall;
  EXPECT_EQ(question()->sequence, 1);
  EXPECT_EQ(now_.wall, answered) << "the pause was over";
  answer();
  EXPECT_EQ(question()->sequence, 2);
  EXPECT_EQ(now_.wall, answered + kLeastPause);
}

TEST_F(LatencyRoundsTest, EntryHasRoundTripAndLoss) {
  EXPECT_EQ(answer_all(10), 10);
  question();
  pass(kTimes.timeout);  // this one is lost
  EXPECT_EQ(answer_all(), kQuestions - 11);
  const std::vector<api::PeerLatency> entries = rounds_.table().entries();
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].node, "node-peer");
  EXPECT_EQ(entries[0].round_trip, absl::Microseconds(20));
  EXPECT_EQ(entries[0].lost_percent, 1U);
  EXPECT_EQ(round_at(entries[0].observed_time, kRoundTime), 59'000'000);
  EXPECT_EQ(rounds_.lost(), 1U);
}

TEST_F(LatencyRoundsTest, SilentPeerGetsThreeQuestionsInARound) {
  while (question().has_value()) continue;
  EXPECT_EQ(rounds_.sent(), 3U);
  EXPECT_EQ(rounds_.lost(), 3U);
  EXPECT_TRUE(rounds_.table().entries().empty());
  EXPECT_EQ(answer_all(), static_cast<int>(kQuestions)) << "it answers in the next round";
}

TEST_F(LatencyRoundsTest, SilentPeerKeepsItsOldEntry) {
  answer_all();
  pass(absl::Hours(3));
  while (question().has_value()) continue;
  EXPECT_EQ(rounds_.lost(), 3U);
  EXPECT_EQ(rounds_.coverage(now_.wall).missing, 0U);
  EXPECT_GT(rounds_.coverage(now_.wall).oldest, absl::Hours(2));
  pass(absl::Hours(46));
  question();
  EXPECT_TRUE(rounds_.table().entries().empty()) << "after two days the entry is forgotten";
}

TEST_F(LatencyRoundsTest, ClockThatJumpsEndsTheMeasurement) {
  answer_all(10);
  now_.wall += absl::Hours(24);
  EXPECT_EQ(question(), std::nullopt);
  EXPECT_EQ(rounds_.table().entries().size(), 1U) << "ten answers are enough";
  now_.wall -= absl::Hours(48);
  EXPECT_EQ(answer_all(), static_cast<int>(kQuestions)) << "an entry from the future is renewed";
}

TEST_F(LatencyRoundsTest, RoundTripAcrossAClockStepIsLost) {
  for (const absl::Duration wrong : {-absl::Seconds(3), absl::Hours(1)}) {
    ASSERT_TRUE(question().has_value());
    answer(wrong);
  }
  EXPECT_EQ(rounds_.lost(), 2U);
  answer_all();
  ASSERT_EQ(rounds_.table().entries().size(), 1U);
  EXPECT_EQ(rounds_.table().entries()[0].round_trip, absl::Microseconds(20));
}

TEST_F(LatencyRoundsTest, AgentsMayComeAndGo) {
  answer_all(3);
  rounds_.set_peers(list_of({}, "own"));
  answer_all();
  EXPECT_EQ(rounds_.table().entries().size(), 1U) << "the measurement that had begun goes on";
  EXPECT_EQ(answer_all(), 0) << "the agent is alone";
  rounds_.set_peers(list_of({"other"}, "own"));
  pass(kRoundTime);
  EXPECT_EQ(question()->host, "other");
  EXPECT_EQ(rounds_.coverage(now_.wall).missing, 1U);
}

TEST_F(LatencyRoundsTest, NameTakesOneQuestion) {
  rounds_.set_peers({in_order({"peer"}, "own"), {Need::kNothing, Need::kName}});
  EXPECT_EQ(answer_all(), 1);
  EXPECT_EQ(rounds_.table().node_of().at("peer"), "node-peer");
  EXPECT_TRUE(rounds_.table().entries().empty());
  EXPECT_EQ(answer_all(), 0) << "the name is known";
}

TEST_F(LatencyRoundsTest, RestoredEntryIsKeptAfterTheFirstAnswer) {
  rounds_.restore({{.node = "node-peer", .round_trip = absl::Microseconds(9), .observed_time = now_.wall}});
  EXPECT_EQ(answer_all(), 1);
  ASSERT_EQ(rounds_.table().entries().size(), 1U);
  EXPECT_EQ(rounds_.table().entries()[0].round_trip, absl::Microseconds(9));
  EXPECT_EQ(answer_all(), 0);
}

TEST_F(LatencyRoundsTest, OwnNodeIsNotMeasured) {
  ASSERT_TRUE(question().has_value());
  answer(absl::Microseconds(20), "node-own");
  EXPECT_EQ(question(), std::nullopt);
  EXPECT_TRUE(rounds_.table().entries().empty());
}

TEST(LatencyTable, EntriesAreTheNearestFirst) {
  LatencyTable table;
  for (int i = 0; i < 300; ++i) {
    table.put({.node = absl::StrCat("n", i), .round_trip = absl::Microseconds(1000 - i)});
  }
  const std::vector<api::PeerLatency> entries = table.entries();
  EXPECT_EQ(entries.size(), kMostEntries);
  EXPECT_EQ(entries.front().node, "n299");
  EXPECT_EQ(entries.back().node, "n44");
}

TEST(LatencyTable, ANodeThatTwoHostsClaimHasNoEntry) {
  LatencyTable table;
  table.set_node("host-4", "n4");
  table.put({.node = "n4", .round_trip = absl::Microseconds(9), .observed_time = absl::UnixEpoch()});
  table.set_node("host-5", "n4");
  EXPECT_TRUE(table.entries().empty());
  table.put({.node = "n4", .round_trip = absl::Microseconds(900), .observed_time = absl::UnixEpoch()});
  EXPECT_TRUE(table.entries().empty());
  table.forget(in_order({"host-4"}, "own"), absl::InfinitePast());
  table.put({.node = "n4", .round_trip = absl::Microseconds(9), .observed_time = absl::UnixEpoch()});
  EXPECT_EQ(table.entries().size(), 1U) << "host-5 has gone";
}

}  // namespace
}  // namespace gleaner::probe
