// Tests of several jobs that compete for machines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/autoscale/autoscaler.h"
#include "tests/unit/autoscale/jobs.h"

namespace gleaner::autoscale {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using Verdicts = std::map<std::string, Verdict>;

Job bidder(const std::string& key, double exposed, std::vector<Candidate> machines) {
  Job job = job_of(key, 4, 1);
  job.summers[0].node = key;
  measure(job, 2.0, exposed);
  job.candidates = std::move(machines);
  return job;
}

Verdicts decided(const std::vector<Job>& jobs) { return settled(measured(), jobs).round(jobs, kStart); }

TEST(Competition, LargestGainGetsMachine) {
  const Verdicts verdicts = decided({bidder("a", 0.1, {machine("m")}), bidder("b", 0.2, {machine("m")})});
  EXPECT_EQ(verdicts.at("a").code, Code::kOutbid);
  EXPECT_EQ(verdicts.at("b").add->node, "m");
}

TEST(Competition, LoserTakesNextBestMachine) {
  const Verdicts verdicts =
      decided({bidder("a", 0.1, {machine("m"), machine("n")}), bidder("b", 0.2, {machine("m"), machine("n")})});
  EXPECT_EQ(verdicts.at("a").add->node, "n");
  EXPECT_EQ(verdicts.at("b").add->node, "m");
}

TEST(Competition, PriorityGoesBeforeGain) {
  Job important = bidder("a", 0.1, {machine("m")});
  important.priority = 10;
  const Verdicts verdicts = decided({important, bidder("b", 0.2, {machine("m")})});
  EXPECT_TRUE(verdicts.at("a").add.has_value());
  EXPECT_EQ(verdicts.at("b").code, Code::kOutbid);
}

TEST(Competition, JobBelowMinimumGoesFirst) {
  Job poor = bidder("a", 0.1, {machine("m")});
  poor.min = 2;
  EXPECT_TRUE(decided({poor, bidder("b", 0.2, {machine("m")})}).at("a").add.has_value());
}

TEST(Competition, EqualGainsAreDealtByName) {
  const Verdicts verdicts = decided({bidder("b", 0.1, {machine("m")}), bidder("a", 0.1, {machine("m")})});
  EXPECT_TRUE(verdicts.at("a").add.has_value());
}

Job contender(double exposed, const std::string& holder) {
  Job job = bidder("a", exposed, {});
  job.contested = {{machine("m"), holder, 0}};
  return job;
}

TEST(Competition, LowerPriorityGivesWay) {
  Job holder = bidder("b", 1.0, {});
  Job contender_job = contender(0.1, "b");
  contender_job.priority = 1;
  const Verdicts verdicts = decided({contender_job, holder});
  ASSERT_THAT(verdicts.at("b").remove, SizeIs(1));
  EXPECT_EQ(verdicts.at("b").code, Code::kGivesWay);
  EXPECT_EQ(verdicts.at("b").wanted, 0U);
}

TEST(Competition, HigherPriorityDoesNotGiveWay) {
  Job holder = bidder("b", 0.001, {});
  holder.priority = 1;
  EXPECT_THAT(decided({contender(1.0, "b"), holder}).at("b").remove, IsEmpty());
}

TEST(Competition, EqualPriorityGivesWayForMuchLargerGain) {
  EXPECT_THAT(decided({contender(1.0, "b"), bidder("b", 0.001, {})}).at("b").remove, SizeIs(1))
      << "the summer saves b nothing";
  EXPECT_THAT(decided({contender(1.0, "b"), bidder("b", 1.0, {})}).at("b").remove, IsEmpty());
}

TEST(Competition, MinimumDoesNotGiveWay) {
  Job holder = bidder("b", 0.001, {});
  holder.min = 1;
  EXPECT_THAT(decided({contender(1.0, "b"), holder}).at("b").remove, IsEmpty());
}

TEST(Competition, JobThatGaveWayDoesNotReturnAtOnce) {
  Job holder = bidder("b", 1.0, {});
  Job contender_job = contender(0.1, "b");
  contender_job.priority = 1;
  Autoscaler scaler = settled(measured(), {contender_job, holder});
  scaler.round({contender_job, holder}, kStart);
  Job without = bidder("b", 1.0, {machine("m")});
  without.summers.clear();
  EXPECT_EQ(scaler.round({without}, kStart + absl::Minutes(5)).at("b").code, Code::kNoMachine);
}

}  // namespace
}  // namespace gleaner::autoscale
