// Tests of the report on a trace, including its missing members and steps.
#include "cli/timeline/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/timeline/recorded.h"

namespace gleaner::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Recorded four_steps() {
  Recorded job(2, 1, {2});
  for (uint64_t step = 0; step < 4; ++step) {
    const double begin = 100.0 * static_cast<double>(step);
    job.push_pull(0, step, {begin + 60, begin + 80}, 3, 4, 5);
  }
  return job;
}

TEST(Report, ShowsStepsAndTheSlowWorker) {
  const Recorded job = four_steps();
  const Timeline timeline(job.trace);
  const std::string text = to_text(make_report(timeline, 0), timeline);
  EXPECT_THAT(text, AllOf(HasSubstr("2 workers, 1 summer: "), HasSubstr("4 steps"), HasSubstr("worker 1, 20.000 ms"),
                          HasSubstr("Waited for worker 1"), Not(HasSubstr("unknown"))));

  const auto written = to_json(make_report(timeline, 2), timeline);
  ASSERT_EQ(written["steps"].size(), 2u);
  const auto& step = written["steps"][1];
  EXPECT_EQ(step["step"], 1);
  EXPECT_NEAR(step["seconds"], 0.1, 1e-6);
  EXPECT_NEAR(step["stages"]["wait"], 0.02, 1e-6);
  EXPECT_NEAR(step["stages"]["wire"], 0.008, 1e-6);
  EXPECT_EQ(step["slowest"]["worker"], 1);
  double sum = 0;
  for (const auto& [stage, seconds] : step["stages"].items()) sum += seconds.get<double>();
  EXPECT_NEAR(sum, step["seconds"], 1e-9);
  EXPECT_THAT(written["remarks"], IsEmpty());
  EXPECT_EQ(written["clocks"].size(), 3u);
}

TEST(Report, NamesMissingMembers) {
  Recorded job = four_steps();
  job.trace.ranks[1].missing = "no answer within 5s";
  job.trace.ranks[1].recording = {};
  const Timeline timeline(job.trace);
  const TraceReport report = make_report(timeline, 0);
  EXPECT_THAT(report.missing, testing::ElementsAre("worker 1"));
  EXPECT_THAT(to_text(report, timeline), AllOf(HasSubstr("worker 1 is not in this trace"), HasSubstr("no answer"),
                                               HasSubstr("unknown"), Not(HasSubstr("Waited for"))));
}

TEST(Report, NamesSkippedStepsWithTheReason) {
  Recorded job = four_steps();
  auto& recording = job.trace.ranks[0].recording;
  std::erase_if(recording.events, [](const trace::Event& event) { return event.step >= 2; });
  recording.dropped = 7;
  const Timeline timeline(job.trace);
  const TraceReport report = make_report(timeline, 0);
  EXPECT_EQ(report.rows.size(), 2u);
  EXPECT_EQ(report.left_out, 1u) << "the last step may have been incomplete";
  EXPECT_THAT(report.remarks, Contains(HasSubstr("had no room for 7")));
  EXPECT_THAT(report.remarks, Contains(HasSubstr("1 step is left out")));
}

TEST(Report, AnEmptyTraceIsReported) {
  const Recorded job(2, 1, {2});
  const Timeline timeline(job.trace);
  EXPECT_THAT(to_text(make_report(timeline, 0), timeline), HasSubstr("No step is whole"));
}

TEST(Report, AMemberWhoseClockIsUnknownIsNamed) {
  Recorded job = four_steps();
  auto& events = job.trace.ranks[1].recording.events;
  events = {events[0]};  // it made a request, and exchanged no frames
  const Timeline timeline(job.trace);
  EXPECT_THAT(make_report(timeline, 0).remarks, Contains(HasSubstr("worker 1 exchanged nothing")));
}

}  // namespace
}  // namespace gleaner::cli
