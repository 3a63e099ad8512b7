// Tests of the machines that are chosen for summers.
#include "operator/reconcile/summer_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/fabric/step_bound.h"

namespace gleaner::reconcile {
namespace {

using fabric::Fabric;
using placement::Candidate;
using testing::ElementsAre;
using testing::IsEmpty;

// Node "r2n1" is in rack r2, whose uplink has uplinks[2] Gbit/s; 0: unknown.
Fabric racks_of(const std::vector<double>& uplinks, int nodes) {
  std::vector<fabric::LabelledNode> labelled;
  std::vector<api::StatedUplink> stated;
  for (size_t rack = 0; rack < uplinks.size(); ++rack) {
    const std::string name = absl::StrCat("r", rack);
    for (int i = 0; i < nodes; ++i) labelled.push_back({absl::StrCat(name, "n", i), {name}});
    if (uplinks[rack] > 0) stated.push_back({"rack", name, uplinks[rack] * 1e9});
  }
  return Fabric::of_labels(std::move(labelled), {{"rack"}}, stated);
}

WorkerMachines workers_on(const std::vector<std::string>& nodes, double bits = 10e9) {
  return {{std::vector<double>(nodes.size(), bits), {}, 1}, nodes};
}

api::TrainingJob job_with(uint32_t min, uint32_t max) {
  api::TrainingJob job;
  job.communication.summers.min = min;
  job.communication.summers.max = max;
  return job;
}

std::vector<std::string> names(const std::vector<Candidate>& candidates) {
  std::vector<std::string> nodes;
  for (const Candidate& candidate : candidates) nodes.push_back(candidate.node);
  return nodes;
}

const std::vector<std::string> kFourOfRack0 = {"r0n0", "r0n1", "r0n2", "r0n3"};

TEST(SummerChoice, PrefersMachinesThatTheirUplinksReach) {
  // Rack 1 passes on a tenth of the bandwidth of its machine, although this machine has the best score.
  const Fabric fabric = racks_of({100, 1, 100}, 8);
  const std::vector<Candidate> machines = {{"r1n0", 10e9}, {"r2n0", 5e9}};
  EXPECT_THAT(names(choose_summers(job_with(0, 2), fabric, workers_on(kFourOfRack0), machines)),
              ElementsAre("r2n0", "r1n0"));
}

TEST(SummerChoice, LeavesOutMachinesBehindAFullUplink) {
  const Fabric fabric = racks_of({100, 2}, 8);
  const std::vector<Candidate> machines = {{"r1n0", 10e9}, {"r1n1", 10e9}, {"r1n2", 10e9}};
  EXPECT_THAT(names(choose_summers(job_with(0, 3), fabric, workers_on(kFourOfRack0), machines)), ElementsAre("r1n0"));
  EXPECT_THAT(names(choose_summers(job_with(2, 3), fabric, workers_on(kFourOfRack0), machines)),
              ElementsAre("r1n0", "r1n1"))
      << "the job asks for two";
}

TEST(SummerChoice, PrefersMachinesNearTheWorkers) {
  const std::vector<Candidate> machines = {{"r1n0", 10e9}, {"r2n0", 20e9}, {"r0n5", 10e9}, {"r0n4", 20e9}};
  const auto chosen = [&](const Fabric& fabric) {
    return names(choose_summers(job_with(4, 4), fabric, workers_on(kFourOfRack0), machines));
  };
  // Without known uplinks, candidates of one bandwidth keep their places by score together.
  EXPECT_THAT(chosen(racks_of({0, 0, 0}, 8)), ElementsAre("r0n5", "r0n4", "r1n0", "r2n0"));
  EXPECT_THAT(chosen(racks_of({1000, 1000, 1000}, 8)), ElementsAre("r0n4", "r2n0", "r0n5", "r1n0"));
  EXPECT_THAT(chosen(Fabric()), ElementsAre("r1n0", "r2n0", "r0n5", "r0n4"));
}

TEST(SummerChoice, TakesTheFastestOfAGroupFirst) {
  const Fabric fabric = racks_of({100, 100}, 8);
  const std::vector<Candidate> machines = {{"r1n0", 1e9}, {"r1n1", 3e9}, {"r1n2", 2e9}};
  EXPECT_THAT(names(choose_summers(job_with(0, 2), fabric, workers_on(kFourOfRack0), machines)),
              ElementsAre("r1n1", "r1n2"));
}

TEST(SummerChoice, JobLimitsTheBandwidth) {
  api::TrainingJob job = job_with(0, 1);
  job.communication.summers.bits_per_second = 2e9;
  const auto chosen = choose_summers(job, racks_of({100, 100}, 8), workers_on(kFourOfRack0), {{"r1n0", 10e9}});
  ASSERT_EQ(chosen.size(), 1u);
  EXPECT_EQ(chosen.front().bits_per_second, 2e9);
  EXPECT_THAT(choose_summers(job, racks_of({100, 100}, 8), workers_on(kFourOfRack0), {{"r1n0", 0}}), IsEmpty());
}

// 2,000 nodes in 125 racks, with a worker in each rack, and candidates of different bandwidths.
TEST(SummerChoice, GoesThroughALargeCluster) {
  const Fabric fabric = racks_of(std::vector<double>(125, 40), 16);
  std::vector<std::string> nodes;
  std::vector<Candidate> machines;
  for (int rack = 0; rack < 125; ++rack) {
    nodes.push_back(absl::StrCat("r", rack, "n0"));
    for (int i = 1; i < 16; ++i) machines.push_back({absl::StrCat("r", rack, "n", i), 5e9 + 1e6 * (rack * 16 + i)});
  }
  const WorkerMachines workers = workers_on(nodes);
  const std::vector<Candidate> chosen = choose_summers(job_with(64, 64), fabric, workers, machines);
  ASSERT_EQ(chosen.size(), 64u);
  fabric::StepBound best(fabric, 1), by_score(fabric, 1);
  for (size_t i = 0; i < nodes.size(); ++i) {
    best.add_worker(nodes[i], 10e9);
    by_score.add_worker(nodes[i], 10e9);
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    best.add_summer(chosen[i].node, chosen[i].bits_per_second);
    by_score.add_summer(machines[i].node, machines[i].bits_per_second);
  }
  EXPECT_LT(best.seconds_per_byte(), by_score.seconds_per_byte());
}

}  // namespace
}  // namespace gleaner::reconcile
