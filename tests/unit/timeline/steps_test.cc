// Tests of find_steps(), which groups requests into steps.
#include "cli/timeline/steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/timeline/recorded.h"

namespace gleaner::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

double milliseconds(Time time) { return static_cast<double>(time) / 1e6; }

// Steps of three tensors: 50 ms without requests, and then requests 1 ms apart.
void train(Recorded& job, uint64_t first_step, uint64_t steps) {
  for (uint64_t step = first_step; step < first_step + steps; ++step) {
    const double begin = 100.0 * static_cast<double>(step) + 50;
    for (uint32_t tensor = 0; tensor < 3; ++tensor) {
      job.push_pull(tensor, step, {begin + tensor, begin + tensor}, 1, 2, 1);
    }
  }
}

TEST(Steps, BeginWhenNoRequestIsInFlight) {
  Recorded job(2, 1, {2, 2, 2});
  // The trace begins during a step.
  job.push_pull(1, 4, {40, 40}, 1, 2, 1);
  job.push_pull(2, 4, {41, 41}, 1, 2, 1);
  train(job, 5, 3);
  const Timeline timeline(job.trace);
  const std::vector<Step> steps = find_steps(timeline);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_THAT(steps[0].tensor_steps, ElementsAre(TensorStep{0, 5}, TensorStep{1, 5}, TensorStep{2, 5}));
  EXPECT_EQ(steps[0].number, 5u);
  EXPECT_EQ(steps[2].number, 7u);
  EXPECT_THAT(steps[0].incomplete, "");
  EXPECT_EQ(steps[0].begin, steps[0].requested) << "the time before the first request is unknown";
  EXPECT_EQ(steps[1].begin, steps[0].end);
  EXPECT_NEAR(milliseconds(steps[1].end - steps[1].begin), 100, 1e-3);
}

TEST(Steps, NoneAreFoundWithoutEventsOfThePlan) {
  for (const double milliseconds : {-5.0, 0.0, 5.0}) {
    Recorded job(1, 0, {0});
    job.at(milliseconds, 0, trace::Kind::kRequested, 1, 0);  // the plan has only tensor 0
    job.trace.ranks[0].recording.dropped = 1;
    const Timeline timeline(job.trace);
    EXPECT_EQ(timeline.whole_until(), static_cast<Time>(milliseconds * 1e6));
    EXPECT_TRUE(find_steps(timeline).empty());
  }
}

TEST(Steps, WithoutAPauseThePlansFirstTensorBegins) {
  Recorded job(1, 0, {0, 0});
  for (uint64_t step = 0; step < 3; ++step) {
    const double begin = 10.0 * static_cast<double>(step);
    job.push_pull(0, step, {begin}, 7, 0, 1);
    job.push_pull(1, step, {begin + 5}, 7, 0, 1);
  }
  const Timeline timeline(job.trace);
  const std::vector<Step> steps = find_steps(timeline);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_THAT(steps[1].tensor_steps, ElementsAre(TensorStep{0, 1}, TensorStep{1, 1}));
}

TEST(Steps, IncompleteStepsAreMarked) {
  Recorded job(2, 1, {2, 2, 2});
  train(job, 0, 3);
  auto& events = job.trace.ranks[2].recording.events;
  std::erase_if(events, [](const trace::Event& event) {
    return event.step == 1 && event.tensor == 2 && event.kind == trace::Kind::kContributed && event.peer == 1;
  });
  const Timeline timeline(job.trace);
  const std::vector<Step> steps = find_steps(timeline);
  EXPECT_EQ(steps[0].incomplete, "");
  EXPECT_THAT(steps[1].incomplete, HasSubstr("summer 0"));
  EXPECT_EQ(steps[2].incomplete, "");
}

TEST(Steps, AfterABufferWasFullNoStepIsComplete) {
  Recorded job(2, 1, {2, 2, 2});
  train(job, 0, 3);
  auto& recording = job.trace.ranks[1].recording;
  std::erase_if(recording.events, [](const trace::Event& event) { return event.step >= 2; });
  recording.dropped = 12;
  const Timeline timeline(job.trace);
  const std::vector<Step> steps = find_steps(timeline);
  EXPECT_EQ(steps[0].incomplete, "");
  EXPECT_THAT(steps[2].incomplete, HasSubstr("buffer of worker 1 was full"));
}

}  // namespace
}  // namespace gleaner::cli
