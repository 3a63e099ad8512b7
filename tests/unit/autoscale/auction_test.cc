// Tests of one auction of free machines.
#include "operator/autoscale/auction.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/autoscale/jobs.h"

namespace gleaner::autoscale {
namespace {

// Jobs in one round of the autoscaler, after they have lost summers.
struct Round {
  explicit Round(std::vector<Job> all) : jobs(std::move(all)) {
    for (const Job& job : jobs) {
      memories.emplace(job.key, JobMemory(job, settings, kStart));
      verdicts[job.key] = {};
    }
  }
  void hold() { Auction(settings, jobs, kStart, memories, verdicts).hold(); }

  Settings settings = measured();
  std::vector<Job> jobs;
  std::map<std::string, JobMemory> memories;
  std::map<std::string, Verdict> verdicts;
};

Job growing(const std::string& key, const char* node) {
  Job job = job_of(key, 4, 1);
  job.candidates = {machine(node)};
  measure(job, 2.0, 1.0);
  return job;
}

TEST(Auction, RemembersAddition) {
  Round round({growing("team/a", "m")});
  round.hold();
  ASSERT_TRUE(round.verdicts["team/a"].add.has_value());
  EXPECT_EQ(round.verdicts["team/a"].wanted, 2U);
  EXPECT_EQ(round.memories.at("team/a").added, kStart);
  EXPECT_EQ(round.memories.at("team/a").added_node, "m");
}

TEST(Auction, GivesMachineOnce) {
  Round round({growing("team/a", "m"), growing("team/b", "m")});
  round.hold();
  EXPECT_TRUE(round.verdicts["team/a"].add.has_value());
  EXPECT_FALSE(round.verdicts["team/b"].add.has_value());
  EXPECT_EQ(round.verdicts["team/b"].code, Code::kOutbid);
}

TEST(Auction, JobThatLosesSummerTakesNoPart) {
  Round round({growing("team/a", "m")});
  Verdict& verdict = round.verdicts["team/a"];
  remove_summer({0, Code::kOwnersNeedIt, "its owners need it"}, round.memories.at("team/a"), verdict);
  round.hold();
  EXPECT_FALSE(verdict.add.has_value());
  EXPECT_EQ(verdict.wanted, 0U);
  EXPECT_EQ(verdict.code, Code::kOwnersNeedIt);
}

TEST(Auction, PausedNodeIsNotUsed) {
  Round round({growing("team/a", "m")});
  round.memories.at("team/a").pauses.begin_longest("m", kStart);
  round.hold();
  EXPECT_FALSE(round.verdicts["team/a"].add.has_value());
  EXPECT_EQ(round.verdicts["team/a"].code, Code::kNoMachine);
}

// A job of four workers in rack a, and a machine in rack b, whose uplink carries 1 Mbit/s.
Job in_racks(const std::vector<Candidate>& candidates) {
  const std::vector<api::StatedUplink> uplinks = {{"rack", "b", 1e6}};
  Job job = job_of("team/a", 4, 0);
  measure(job, 2.0, 1.0);
  job.worker_nodes = {"a0", "a1", "a2", "a3"};
  job.fabric = std::make_shared<const fabric::Fabric>(fabric::Fabric::of_labels(
      {{"a0", {"a"}}, {"a1", {"a"}}, {"a2", {"a"}}, {"a3", {"a"}}, {"a4", {"a"}}, {"b0", {"b"}}, {"b1", {"b"}}},
      {{"rack"}}, uplinks));
  job.candidates = candidates;
  return job;
}

TEST(Auction, MachineBehindAFullUplinkIsNotWorthIt) {
  Round round({in_racks({machine("b0")})});
  round.hold();
  EXPECT_FALSE(round.verdicts["team/a"].add.has_value());
  EXPECT_EQ(round.verdicts["team/a"].code, Code::kNotWorthIt);
}

TEST(Auction, ComparesTheMachinesOfEachGroup) {
  std::vector<Candidate> candidates;
  for (int i = 0; i < 20; ++i) candidates.push_back(machine("b" + std::to_string(i % 2)));
  candidates.push_back(machine("a4"));
  Round round({in_racks(candidates)});
  round.hold();
  ASSERT_TRUE(round.verdicts["team/a"].add.has_value());
  EXPECT_EQ(round.verdicts["team/a"].add->node, "a4");
}

TEST(Worth, SummerBehindAFullUplinkIsLostWithoutLoss) {
  Job job = in_racks({});
  job.summers = {{0, "b0", 1e9, true, false, absl::Hours(1), {}}, {1, "a4", 1e9, true, false, absl::Hours(1), {}}};
  const Settings settings;
  const Worth worth(job, settings, {});
  EXPECT_LT(worth.share(worth.loss_seconds(0)), settings.min_loss);
  EXPECT_GT(worth.share(worth.loss_seconds(1)), 0.1);
}

}  // namespace
}  // namespace gleaner::autoscale
