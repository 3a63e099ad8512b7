// Tests that the critical path of a step has the stages of the recorded step.
#include "cli/timeline/critical_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/unit/timeline/recorded.h"

namespace gleaner::cli {
namespace {

using trace::Kind;

StepPath last_path(const Recorded& job) {
  const Timeline timeline(job.trace);
  const std::vector<Step> steps = find_steps(timeline);
  EXPECT_FALSE(steps.empty());
  const StepPath path = walk(timeline, steps.back());
  // Every path covers the whole step without gaps.
  EXPECT_EQ(std::accumulate(path.spent.begin(), path.spent.end(), Time{0}), steps.back().end - steps.back().begin);
  for (size_t i = 1; i < path.segments.size(); ++i) EXPECT_EQ(path.segments[i].begin, path.segments[i - 1].end);
  return path;
}

TEST(CriticalPath, IsComputeQueueWireAndSum) {
  Recorded job(2, 1, {2});
  job.push_pull(0, 0, {10, 10}, 3, 4, 5);  // done at 26
  job.push_pull(0, 1, {76, 76}, 3, 4, 5);
  const StepPath path = last_path(job);
  EXPECT_NEAR(spent(path, Stage::kCompute), 50, kClose);
  EXPECT_NEAR(spent(path, Stage::kQueue), 3, kClose);
  EXPECT_NEAR(spent(path, Stage::kWire), 8, kClose);
  EXPECT_NEAR(spent(path, Stage::kSum), 5, kClose);
  EXPECT_EQ(path[Stage::kWait], 0);
  EXPECT_EQ(path[Stage::kUnknown], 0);
  EXPECT_FALSE(path.slowest.has_value());
}

TEST(CriticalPath, NamesTheWorkerThatOthersWaitedFor) {
  Recorded job(4, 1, {4});
  job.push_pull(0, 0, {10, 10, 10, 10}, 3, 4, 5);
  job.push_pull(0, 1, {76, 76, 106, 77}, 3, 4, 5);
  const StepPath path = last_path(job);
  ASSERT_TRUE(path.slowest.has_value());
  EXPECT_EQ(path.slowest->worker, 2u);
  EXPECT_NEAR(spent(path, Stage::kWait), 30, kClose);
  EXPECT_NEAR(spent(path, Stage::kCompute), 50, kClose);
  EXPECT_NEAR(spent(path, Stage::kWire), 8, kClose);
}

TEST(CriticalPath, TheLastOfSeveralTensorsCounts) {
  Recorded job(2, 1, {2, 0});
  job.push_pull(0, 0, {10, 10}, 1, 1, 1);
  // Done at 15, on worker 1, whose result has to come from worker 0.
  job.push_pull(1, 0, {11, 11}, 1, 1, 1);
  job.push_pull(0, 1, {50, 50}, 1, 1, 1);
  job.push_pull(1, 1, {60, 60}, 2, 7, 1);  // requested at 60, while no request was in flight
  const StepPath path = last_path(job);
  EXPECT_NEAR(spent(path, Stage::kWire), 1 + 1 + 14, kClose) << "the wire time includes the earlier push_pull";
  EXPECT_NEAR(spent(path, Stage::kCompute), (50 - 15) + (60 - 54), kClose);
  EXPECT_EQ(path.segments.back().to, 1u);
  EXPECT_EQ(path.segments.back().member, 0u);
}

TEST(CriticalPath, ClocksOfMembersDoNotMatter) {
  Recorded job(2, 1, {2});
  job.set_ahead(1, -3'600'000);
  job.set_ahead(2, 86'400'000);
  for (uint64_t step = 0; step < 4; ++step) {
    const double begin = 100.0 * static_cast<double>(step);
    job.push_pull(0, step, {begin + 60, begin + 80}, 3, 4, 5);
  }
  const StepPath path = last_path(job);
  ASSERT_TRUE(path.slowest.has_value());
  EXPECT_EQ(path.slowest->worker, 1u);
  EXPECT_NEAR(spent(path, Stage::kWait), 20, kClose);
  EXPECT_NEAR(spent(path, Stage::kWire), 8, kClose);
  EXPECT_NEAR(spent(path, Stage::kCompute), 100 - 20 - 8 - 3 - 5, kClose);
}

TEST(CriticalPath, AWaitForALocalRankBelongsToItsWorker) {
  Recorded job(2, 0, {0}, 2);  // ranks 0, 1 of worker 0; 2, 3 of worker 1
  const auto step = [&job](uint64_t number, double begin, double last_local) {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      job.at(rank == 1 ? last_local : begin, rank, Kind::kRequested, 0, number);
    }
    // The ranks of worker 1 are ready just as late, so no worker waits for the other.
    const double ready = last_local + 2;
    for (const uint32_t leader : {0u, 2u}) job.at(ready, leader, Kind::kReady, 0, number);
    job.at(ready, 0, Kind::kPushed, 0, number, 0);
    job.at(ready, 2, Kind::kPushed, 0, number, 0);
    job.at(ready, 0, Kind::kContributed, 0, number, 0);
    job.at(ready + 4, 0, Kind::kContributed, 0, number, 1);
    job.at(ready + 4, 0, Kind::kSumBegun, 0, number);
    job.at(ready + 5, 0, Kind::kSumEnded, 0, number);
    job.at(ready + 5, 0, Kind::kAnswered, 0, number, 0);
    job.at(ready + 5, 0, Kind::kAnswered, 0, number, 1);
    job.at(ready + 5, 0, Kind::kResult, 0, number, 0);
    job.at(ready + 9, 2, Kind::kResult, 0, number, 0);
    for (uint32_t rank = 0; rank < 4; ++rank) job.at(ready + (rank < 2 ? 6 : 10), rank, Kind::kDone, 0, number);
  };
  step(0, 10, 10);  // done at 22
  step(1, 50, 57);
  const StepPath path = last_path(job);
  EXPECT_NEAR(spent(path, Stage::kCompute), 57 - 22, kClose) << "computation lasts until the last local rank's request";
  EXPECT_NEAR(spent(path, Stage::kLocal), 2 + 1, kClose);
  EXPECT_NEAR(spent(path, Stage::kWire), 8, kClose);
  EXPECT_NEAR(spent(path, Stage::kSum), 1, kClose);
}

TEST(CriticalPath, EventsOfAMissingMemberAreUnknown) {
  Recorded job(2, 1, {2, 0});
  job.push_pull(0, 0, {10, 10}, 3, 4, 5);
  job.push_pull(0, 1, {76, 76}, 3, 4, 5);
  // Frames between the workers, which relate their clocks to each other.
  for (const auto& [from, to] : {std::pair{0u, 1u}, std::pair{1u, 0u}}) {
    job.at(1, from, Kind::kPushed, 1, 99, to);
    job.at(2, to, Kind::kContributed, 1, 99, from);
  }
  job.trace.ranks[2].missing = "no answer";
  job.trace.ranks[2].recording = {};
  const StepPath path = last_path(job);
  EXPECT_NEAR(spent(path, Stage::kUnknown), 4 + 5 + 4, kClose) << "the time from the push to the result is unknown";
  EXPECT_NEAR(spent(path, Stage::kQueue), 3, kClose);
  EXPECT_NEAR(spent(path, Stage::kCompute), 50, kClose);
  EXPECT_EQ(path[Stage::kWire] + path[Stage::kSum] + path[Stage::kWait], 0);
}

}  // namespace
}  // namespace gleaner::cli
