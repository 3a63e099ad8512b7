// Tests of Correction: jobs whose steps take other times than the models say.
#include "common/strategy/correction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "common/topology/builders.h"
#include "tests/unit/strategy/links.h"

namespace gleaner::strategy {
namespace {

constexpr absl::Duration kEvery = absl::Seconds(3);  // between measurements

std::vector<Candidate> candidates_of(uint32_t workers) {
  return *candidates(make_network(*topology::star(workers, {kBits, 0, 10e-6})), workers, 0);
}

// A job whose strategies take their modelled times multiplied by `truth`, and some noise.
class MismodelledJob {
 public:
  MismodelledJob(uint32_t workers, std::vector<TensorGroup> groups, uint32_t seed = 1)
      : all_(candidates_of(workers)), truth_(all_), groups_(std::move(groups)), random_(seed) {
    for (TensorGroup& group : groups_) group.strategy = best(seconds_of(all_, group.bytes, group.partition_bytes));
    correction_.on_plan(false, now_);
  }

  void multiply(size_t candidate, double by) { truth_[candidate].model.multiply(by); }
  void multiply_all(const std::function<double()>& draw) {
    for (size_t i = 0; i < truth_.size(); ++i) multiply(i, draw());
  }
  double seconds() const { return step_seconds(truth_, groups_, in_force(groups_)); }
  double least_seconds() const { return step_seconds(truth_, groups_, best_strategies(truth_, groups_)); }

  // Measures steps, and carries out each change at once.
  void run(int measurements, double noise = 0) {
    for (int i = 0; i < measurements; ++i) {
      now_ += kEvery;
      least_tried_ = std::min(least_tried_, seconds());
      const double measured = seconds() * std::exp(std::normal_distribution<double>(0, noise)(random_));
      const auto change = correction_.on_measured(all_, groups_, measured, now_);
      if (!change.has_value()) continue;
      for (size_t group = 0; group < groups_.size(); ++group) groups_[group].strategy = change->strategies[group];
      changed_at_.push_back(now_);
      correction_.on_plan(true, now_);
    }
  }

  const std::vector<Candidate> all_;
  std::vector<Candidate> truth_;
  std::vector<TensorGroup> groups_;
  std::mt19937 random_;
  Correction correction_;
  absl::Duration now_;
  double least_tried_ = 1e9;  // seconds of a step with the fastest of the strategies that were in force
  std::vector<absl::Duration> changed_at_;
};

TensorGroup group_of(double bytes, double per_step = 1) { return {bytes, std::min(bytes, 1e6), per_step}; }

TEST(Correction, TrueModelsStay) {
  MismodelledJob job(8, {group_of(64e6), group_of(64e3), group_of(4)});
  const std::vector<size_t> before = in_force(job.groups_);
  job.run(200, 0.05);
  EXPECT_EQ(in_force(job.groups_), before);
  EXPECT_TRUE(job.changed_at_.empty());
}

TEST(Correction, ASlowStrategyIsReplacedByTheNextOne) {
  MismodelledJob job(8, {group_of(64e3)});
  const size_t slow = job.groups_[0].strategy;
  ASSERT_NE(slow, 0u);
  job.multiply(slow, 3);
  job.run(1);
  EXPECT_TRUE(job.changed_at_.empty()) << "one measurement is not enough";
  EXPECT_NEAR(job.correction_.factor(job.all_[slow]), 3, 1e-6);
  EXPECT_NEAR(job.correction_.factor(job.all_[0]), std::sqrt(3), 1e-6);
  EXPECT_FALSE(job.correction_.is_measured(job.all_[0]));
  job.run(1);
  EXPECT_EQ(job.changed_at_.size(), 1u);
  EXPECT_NE(job.groups_[0].strategy, slow);
  job.run(100);
  EXPECT_EQ(job.changed_at_.size(), 1u) << "it stays with the faster one";
}

TEST(Correction, AChangeThatDoesNotHelpIsRevertedOnce) {
  MismodelledJob job(8, {group_of(64e3)});
  const size_t first = job.groups_[0].strategy;
  job.multiply_all([] { return 4.0; });  // no strategy is better than the first one
  job.multiply(first, 0.6);
  job.run(300, 0.03);
  EXPECT_EQ(job.groups_[0].strategy, first);
  EXPECT_LE(job.changed_at_.size(), 2 * job.all_.size()) << "each other strategy is tried once at most";
  const size_t changes = job.changed_at_.size();
  job.run(1000, 0.03);
  EXPECT_EQ(job.changed_at_.size(), changes);
}

TEST(Correction, FactorsAreBounded) {
  MismodelledJob job(8, {group_of(64e6)});
  job.multiply_all([] { return 100.0; });
  job.run(50);
  for (const Candidate& each : job.all_) EXPECT_LE(job.correction_.factor(each), 4.0001);
  job.multiply_all([] { return 1e-4; });
  job.run(50);
  for (const Candidate& each : job.all_) EXPECT_GE(job.correction_.factor(each), 0.2499);
}

// For random true factors the job ends with the fastest strategies that it tried, but for the threshold, knows how long
// a step takes with them, and stays with them.
TEST(Correction, ConvergesOnTheTruth) {
  size_t all_changes = 0;
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    MismodelledJob job(8, {group_of(64e6, 3), group_of(1e6, 20), group_of(64e3, 10), group_of(4, 2)}, seed);
    std::mt19937 random(seed);
    job.multiply_all([&] { return std::exp(std::uniform_real_distribution<double>(-1.3, 1.3)(random)); });
    job.run(300, 0.05);
    EXPECT_LT(job.seconds(), 1.3 * job.least_tried_);
    const auto corrected = job.correction_.corrected(job.all_);
    EXPECT_NEAR(step_seconds(corrected, job.groups_, in_force(job.groups_)), job.seconds(), 0.1 * job.seconds());
    const size_t changes = job.changed_at_.size();
    job.run(500, 0.05);
    EXPECT_EQ(job.changed_at_.size(), changes) << "oscillates";
    EXPECT_LE(changes, 6u);
    all_changes += changes;
  }
  EXPECT_GT(all_changes, 10u);
}

TEST(Correction, FollowsAChangedNetwork) {
  MismodelledJob job(8, {group_of(64e3)});
  const size_t first = job.groups_[0].strategy;
  job.multiply(first, 3);
  job.run(100, 0.03);
  const size_t second = job.groups_[0].strategy;
  ASSERT_NE(second, first);
  const size_t changes = job.changed_at_.size();
  job.multiply(first, 1.0 / 3);  // the first one is fast again, and the second one becomes slow
  job.multiply(second, 4);
  job.run(100, 0.03);
  EXPECT_GT(job.changed_at_.size(), changes);
  EXPECT_LT(job.seconds(), 1.3 * job.least_seconds());
}

TEST(Correction, ShortDisturbancesForgetNothing) {
  MismodelledJob job(8, {group_of(64e3)});
  const size_t first = job.groups_[0].strategy;
  job.multiply(first, 3);
  job.run(100);
  const size_t second = job.groups_[0].strategy;
  job.multiply(second, 1.5);
  job.run(2);
  job.multiply(second, 1 / 1.5);
  job.run(20);
  EXPECT_TRUE(job.correction_.is_measured(job.all_[first]));
  EXPECT_EQ(job.changed_at_.size(), 1u);
}

// Even if the network changes without end, changes become rare.
TEST(Correction, RepeatedChangesBackOff) {
  MismodelledJob job(8, {group_of(64e3)});
  for (int i = 0; i < 400; ++i) {
    const size_t present = job.groups_[0].strategy;
    job.truth_ = job.all_;
    job.multiply(present, 4);
    job.run(10);
  }
  ASSERT_GT(job.changed_at_.size(), 8u);
  for (size_t i = 1; i < job.changed_at_.size(); ++i) {
    const absl::Duration pause = job.changed_at_[i] - job.changed_at_[i - 1];
    EXPECT_GE(pause, std::min(Correction::kFirstPause * (1 << std::min<size_t>(i - 1, 10)), Correction::kLongestPause));
  }
}

TEST(Correction, TensorsThatAccumulateStay) {
  TensorGroup fixed = group_of(64e6);
  fixed.is_fixed = true;
  MismodelledJob job(8, {fixed});
  job.groups_[0].strategy = 0;
  job.multiply(0, 4);
  job.run(20);
  EXPECT_TRUE(job.changed_at_.empty());
}

}  // namespace
}  // namespace gleaner::strategy
