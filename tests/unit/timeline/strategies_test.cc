// Tests of traces in which schedules sum push_pulls, and in which plans change the strategy of a tensor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/timeline/push_pull_numbers.h"
#include "cli/timeline/receives.h"
#include "cli/timeline/report.h"
#include "tests/unit/timeline/recorded.h"

namespace gleaner::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using trace::Kind;

// Two steps of a ring of two workers.
Recorded two_rings() {
  Recorded job(2, 0, {0});
  job.ring(0, 0, 0, {10, 10}, 3, 4, 5);  // done at 31
  job.ring(0, 1, 1, {71, 71}, 3, 4, 5);
  return job;
}

// Owners sum the push_pulls 0, 1 and 4, a ring the push_pulls 2 and 3.
Recorded three_changes() {
  Recorded job(2, 1, {2});
  job.push_pull(0, 0, {10, 10}, 3, 4, 5, 0);
  job.push_pull(0, 1, {110, 110}, 3, 4, 5, 1);
  job.ring(0, 2, 0, {210, 210}, 3, 4, 5);
  job.ring(0, 3, 1, {310, 310}, 3, 4, 5);
  job.push_pull(0, 4, {410, 410}, 3, 4, 5, 2);
  return job;
}

TEST(ScheduledPath, IsComputeQueueWireAndSum) {
  const Recorded job = two_rings();
  const Timeline timeline(job.trace);
  const TraceReport report = make_report(timeline, 0);
  ASSERT_THAT(report.rows, SizeIs(2));
  const StepPath& path = report.rows[1].path;
  EXPECT_NEAR(spent(path, Stage::kCompute), 40, kClose);
  EXPECT_NEAR(spent(path, Stage::kQueue), 3, kClose);
  EXPECT_NEAR(spent(path, Stage::kWire), 8, kClose);
  EXPECT_NEAR(spent(path, Stage::kSum), 10, kClose);
  EXPECT_EQ(path[Stage::kUnknown], 0);
  EXPECT_FALSE(path.slowest.has_value());
}

TEST(ScheduledPath, NamesTheWorkerThatOthersWaitedFor) {
  Recorded job(2, 0, {0});
  job.ring(0, 0, 0, {10, 10}, 3, 4, 5);
  job.ring(0, 1, 1, {71, 101}, 3, 4, 5);
  const Timeline timeline(job.trace);
  const TraceReport report = make_report(timeline, 0);
  ASSERT_THAT(report.rows, SizeIs(2));
  const StepPath& path = report.rows[1].path;
  ASSERT_TRUE(path.slowest.has_value());
  EXPECT_EQ(path.slowest->worker, 1u);
  EXPECT_NEAR(spent(path, Stage::kWait), 30, kClose);
  EXPECT_NEAR(spent(path, Stage::kCompute), 40, kClose);
}

TEST(ScheduledPath, EventsOfAMissingWorkerAreUnknown) {
  Recorded job = two_rings();
  job.trace.ranks[1].missing = "no answer";
  job.trace.ranks[1].recording = {};
  const Timeline timeline(job.trace);
  const TraceReport report = make_report(timeline, 0);
  ASSERT_THAT(report.rows, SizeIs(2));
  const StepPath& path = report.rows[1].path;
  EXPECT_NEAR(spent(path, Stage::kUnknown), 16, kClose) << "from the begin of the program to the last slice";
  EXPECT_NEAR(spent(path, Stage::kSum), 5, kClose);
}

TEST(ScheduledSteps, LackSlicesFromBeforeTheTrace) {
  Recorded job = two_rings();
  auto& events = job.trace.ranks[1].recording.events;
  const auto arrival =
      std::ranges::find_if(events, [](const trace::Event& event) { return event.kind == Kind::kSliceArrived; });
  events.erase(arrival);
  const Timeline timeline(job.trace);
  const std::vector<Step> steps = find_steps(timeline);
  ASSERT_THAT(steps, SizeIs(2));
  EXPECT_THAT(steps[0].incomplete, HasSubstr("missing from the trace of worker 1"));
  EXPECT_THAT(steps[1].incomplete, IsEmpty());
}

TEST(Clocks, AreSetByTheSlicesOfSchedules) {
  Recorded job(2, 0, {0});
  job.set_ahead(1, 86'400'000);
  job.ring(0, 0, 0, {10, 10}, 3, 4, 5);
  const Timeline timeline(job.trace);
  ASSERT_TRUE(timeline.clocks()[1].has_value());
  EXPECT_NEAR(timeline.clocks()[1]->uncertainty, 4e6, 1);
  EXPECT_NEAR(spent(make_report(timeline, 0).rows.at(0).path, Stage::kWire), 8, kClose);
}

TEST(ChangesOfStrategy, StepsHaveTheEventsOfAllMembers) {
  const Recorded job = three_changes();
  const Timeline timeline(job.trace);
  const std::vector<Step> steps = find_steps(timeline);
  ASSERT_THAT(steps, SizeIs(5));
  for (const Step& step : steps) EXPECT_THAT(step.incomplete, IsEmpty()) << "step " << step.number;
  EXPECT_THAT(timeline.tensor_steps(), SizeIs(5)) << "no events are joined with another push_pull";
  EXPECT_EQ(timeline.times_of({0, 1}).schedule, std::nullopt);
  EXPECT_EQ(timeline.times_of({0, 2}).schedule, 0u);
  EXPECT_EQ(timeline.times_of({0, 4}).schedule, std::nullopt);
  const StepPath path = walk(timeline, steps[4]);
  EXPECT_NEAR(spent(path, Stage::kWire), 8, kClose);
  EXPECT_NEAR(spent(path, Stage::kSum), 5, kClose);
  EXPECT_EQ(path[Stage::kUnknown], 0);
}

TEST(ChangesOfStrategy, MayHaveHappenedBeforeTheTrace) {
  Recorded job(2, 1, {2});
  job.push_pull(0, 70, {10, 10}, 3, 4, 5, 20);
  job.push_pull(0, 71, {110, 110}, 3, 4, 5, 21);
  const Timeline timeline(job.trace);
  for (const Step& step : find_steps(timeline)) EXPECT_THAT(step.incomplete, IsEmpty());
  EXPECT_THAT(timeline.tensor_steps(), SizeIs(2));
}

TEST(PushPullNumbers, FollowFromTheNearestStepOfTheStrategy) {
  const Recorded job = three_changes();
  const PushPullNumbers numbers(job.trace);
  const auto find = [&](Kind kind, uint64_t step) { return numbers.find({.step = step, .kind = kind}); };
  EXPECT_EQ(find(Kind::kContributed, 1), 1u);
  EXPECT_EQ(find(Kind::kContributed, 2), 4u);
  EXPECT_EQ(find(Kind::kAnswered, 5), 7u) << "after the trace";
  EXPECT_EQ(find(Kind::kSliceArrived, 1), 3u);
  EXPECT_EQ(find(Kind::kReady, 2), 2u);
  EXPECT_EQ(numbers.find({.step = 6, .tensor = 1, .kind = Kind::kSumBegun}), 6u) << "no worker has recorded the tensor";
}

TEST(Report, SumsUpSchedules) {
  const Recorded job = three_changes();
  const Timeline timeline(job.trace);
  const TraceReport report = make_report(timeline, 0);
  EXPECT_THAT(to_text(report, timeline),
              HasSubstr("Schedule 0 (ring): 2 partitions, 8 slices, 4.00 KiB; median slice: queue 3 ms, wire 4 ms, "
                        "sum 5 ms\n"));
  const auto written = to_json(report, timeline);
  const auto expected = nlohmann::json::parse(R"([{"schedule": 0, "algorithm": "ring", "partitions": 2,
      "median_seconds": {"queue": 0.003, "wire": 0.004, "sum": 0.005},
      "workers": [{"worker": 0, "slices_sent": 4, "slices_received": 4, "sent_bytes": 2048},
                  {"worker": 1, "slices_sent": 4, "slices_received": 4, "sent_bytes": 2048}]}])");
  EXPECT_EQ(nlohmann::json::parse(written["schedules"].dump()), expected);
}

}  // namespace
}  // namespace gleaner::cli
