// Tests the stages of GPUs in critical paths, in the table and in the merged trace's spans.
#include "cli/timeline/gpu_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "cli/timeline/report.h"
#include "tests/unit/timeline/recorded.h"

namespace gleaner::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using trace::Kind;

StepPath path_of_last_step(const Recorded& job) {
  const Timeline timeline(job.trace);
  const std::vector<Step> steps = find_steps(timeline);
  EXPECT_FALSE(steps.empty());
  EXPECT_EQ(steps.back().incomplete, "");
  const StepPath path = walk(timeline, steps.back());
  EXPECT_EQ(std::accumulate(path.spent.begin(), path.spent.end(), Time{0}), steps.back().end - steps.back().begin);
  for (size_t i = 1; i < path.segments.size(); ++i) EXPECT_EQ(path.segments[i].begin, path.segments[i - 1].end);
  return path;
}

std::string table_of(const Recorded& job) {
  const Timeline timeline(job.trace);
  return to_text(make_report(timeline, 0), timeline);
}

Recorded two_gpu_steps() {
  Recorded job(2, 1, {2});
  job.gpu_push_pull(0, 0, 0, 5);  // the result is on the GPUs at 30
  job.gpu_push_pull(0, 1, 25, 105);
  return job;
}

// The second request is made before the first one's result is on the GPU, as programs do that run ahead of it.
TEST(GpuStages, ArePartOfTheCriticalPath) {
  const StepPath path = path_of_last_step(two_gpu_steps());
  EXPECT_NEAR(spent(path, Stage::kCompute), 75, kClose) << "from the last result until the GPU has made the tensor";
  EXPECT_NEAR(spent(path, Stage::kCopyOut), 2, kClose);
  EXPECT_NEAR(spent(path, Stage::kQueue), 1 + 3, kClose) << "for the copy, and for the connection";
  EXPECT_NEAR(spent(path, Stage::kWire), 8, kClose);
  EXPECT_NEAR(spent(path, Stage::kSum), 5, kClose);
  EXPECT_NEAR(spent(path, Stage::kCopyIn), 6, kClose);
  EXPECT_EQ(path[Stage::kLocal] + path[Stage::kReduce] + path[Stage::kBroadcast], 0);
  EXPECT_EQ(path.segments.back().stage, Stage::kCopyIn);
}

TEST(GpuStages, HaveColumnsWhereTimeWasSpent) {
  EXPECT_THAT(table_of(two_gpu_steps()), AllOf(HasSubstr("copy out"), HasSubstr("copy in"), Not(HasSubstr("reduce")),
                                               Not(HasSubstr("broadcast"))));
  Recorded on_hosts(2, 1, {2});
  on_hosts.push_pull(0, 0, {10, 10}, 3, 4, 5);
  EXPECT_THAT(table_of(on_hosts), AllOf(HasSubstr("local"), Not(HasSubstr("copy"))));
}

TEST(GpuStages, WorkWhoseBeginIsNotRecordedIsLocal) {
  Recorded job = two_gpu_steps();
  for (RankTrace& rank : job.trace.ranks) {
    std::erase_if(rank.recording.events, [](const trace::Event& event) {
      return event.kind == Kind::kCopyOutBegun || event.kind == Kind::kCopyInBegun;
    });
  }
  const StepPath path = path_of_last_step(job);
  EXPECT_NEAR(spent(path, Stage::kLocal), 3 + 6, kClose);
  EXPECT_EQ(path[Stage::kCopyOut] + path[Stage::kCopyIn], 0);
}

// The second partition is copied to the host after the first one is ready.
TEST(GpuStages, CopiesOfLaterPartsOfATensorCount) {
  Recorded job(1, 1, {1});
  job.trace.plan.partitions.push_back({0, 1, 0, 1024});
  job.trace.plan.first_partition = {0, 2};
  const auto at = [&job](double milliseconds, uint32_t rank, Kind kind, uint32_t partition) {
    job.at(milliseconds, rank, kind, 0, 0, kind == Kind::kPushed || kind == Kind::kResult ? 1 : 0);
    job.trace.ranks[rank].recording.events.back().partition = partition;
  };
  at(0, 0, Kind::kRequested, 0);
  at(10, 0, Kind::kProduced, 0);
  at(10, 0, Kind::kCopyOutBegun, 0);
  at(12, 0, Kind::kCopyOutBegun, 1);
  at(12, 0, Kind::kCopyOutEnded, 0);
  at(12, 0, Kind::kReady, 0);
  at(12, 0, Kind::kPushed, 0);
  at(20, 0, Kind::kCopyOutEnded, 1);
  at(20, 0, Kind::kReady, 1);
  at(23, 0, Kind::kPushed, 1);
  for (uint32_t partition = 0; partition < 2; ++partition) {
    const double arrived = partition == 0 ? 13 : 24;
    at(arrived, 1, Kind::kContributed, partition);
    at(arrived, 1, Kind::kSumBegun, partition);
    at(arrived + 1, 1, Kind::kSumEnded, partition);
    at(arrived + 1, 1, Kind::kAnswered, partition);
    at(arrived + 2, 0, Kind::kResult, partition);
    at(arrived + 2, 0, Kind::kCopyInBegun, partition);
  }
  at(18, 0, Kind::kCopyInEnded, 0);
  at(26, 0, Kind::kDone, 0);
  at(28, 0, Kind::kCopyInEnded, 1);
  const StepPath path = path_of_last_step(job);
  EXPECT_NEAR(spent(path, Stage::kCopyOut), 2 + 8, kClose);
  EXPECT_NEAR(spent(path, Stage::kQueue), 3, kClose);
  EXPECT_NEAR(spent(path, Stage::kCopyIn), 2, kClose);
  EXPECT_NEAR(spent(path, Stage::kWire), 2, kClose);
  EXPECT_EQ(path[Stage::kLocal], 0);
}

// The ranks copy slices to each other, and each sums and exchanges one (docs/local-ranks.md#gpus).
TEST(GpuStages, LocalRanksReduceAndBroadcast) {
  Recorded job(2, 0, {0}, 2);  // ranks 0, 1 of worker 0; 2, 3 of worker 1
  const auto step = [&job](uint64_t number, double begin) {
    const auto both = [&](double since, double until, uint32_t rank, Kind begun, Kind ended) {
      job.at(begin + since, rank, begun, 0, number);
      job.at(begin + until, rank, ended, 0, number);
    };
    for (uint32_t rank = 0; rank < 4; ++rank) {
      job.at(begin - 5, rank, Kind::kRequested, 0, number);
      job.at(begin, rank, Kind::kProduced, 0, number);
      both(0, 2, rank, Kind::kReduceBegun, Kind::kReduceEnded);
      both(3, 5, rank, Kind::kReduceBegun, Kind::kReduceEnded);
      both(5, 8, rank, Kind::kCopyOutBegun, Kind::kCopyOutEnded);
    }
    for (uint32_t w = 0; w < 2; ++w) {
      job.at(begin + 9, 2 * w, Kind::kReady, 0, number);
      job.at(begin + 9, 2 * w, Kind::kPushed, 0, number, 0);
      job.at(begin + 10, 0, Kind::kContributed, 0, number, w);
    }
    job.at(begin + 10, 0, Kind::kSumBegun, 0, number);
    job.at(begin + 11, 0, Kind::kSumEnded, 0, number);
    for (uint32_t w = 0; w < 2; ++w) {
      job.at(begin + 11, 0, Kind::kAnswered, 0, number, w);
      job.at(begin + 12, 2 * w, Kind::kResult, 0, number, 0);
    }
    for (uint32_t rank = 0; rank < 4; ++rank) {
      both(13, 15, rank, Kind::kCopyInBegun, Kind::kCopyInEnded);
      both(16, 20, rank, Kind::kBroadcastBegun, Kind::kBroadcastEnded);
      job.at(begin + 20, rank, Kind::kDone, 0, number);
    }
  };
  step(0, 10);  // done at 30
  step(1, 50);
  const StepPath path = path_of_last_step(job);
  EXPECT_NEAR(spent(path, Stage::kCompute), 20, kClose);
  EXPECT_NEAR(spent(path, Stage::kReduce), 2 + 2, kClose);
  EXPECT_NEAR(spent(path, Stage::kCopyOut), 3, kClose);
  EXPECT_NEAR(spent(path, Stage::kCopyIn), 2, kClose);
  EXPECT_NEAR(spent(path, Stage::kBroadcast), 4, kClose);
  EXPECT_NEAR(spent(path, Stage::kLocal), 4, kClose) << "the messages between the ranks";
}

}  // namespace
}  // namespace gleaner::cli
