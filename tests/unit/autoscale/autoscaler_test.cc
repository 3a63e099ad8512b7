// Tests of the autoscaler with one job: when it adds summers, when it removes them, and when it changes nothing.
#include "operator/autoscale/autoscaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "tests/unit/autoscale/jobs.h"

namespace gleaner::autoscale {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// Returns the verdict of one round of a settled autoscaler (jobs.h).
Verdict decided(const Settings& settings, const Job& job) {
  return settled(settings, {job}).round({job}, kStart).at(job.key);
}

Job growing() {
  Job job = job_of("team/digits", 4, 1);
  job.candidates = {machine("a"), machine("b")};
  measure(job, 2.0, 1.0);
  return job;
}

TEST(Autoscaler, AddsSummerThatSavesEnough) {
  const Verdict verdict = decided(measured(), growing());
  ASSERT_TRUE(verdict.add.has_value());
  EXPECT_EQ(verdict.add->node, "a");
  EXPECT_EQ(verdict.wanted, 2U);
  EXPECT_EQ(verdict.code, Code::kWorthIt);
  EXPECT_GT(verdict.share, 0.01);
  EXPECT_TRUE(absl::StrContains(verdict.why, "of the step of 2 s")) << verdict.why;
}

TEST(Autoscaler, TakesMachineThatSavesMost) {
  Job job = growing();
  job.candidates = {machine("slow", 1e8), machine("fast", 1e9)};
  EXPECT_EQ(decided(measured(), job).add->node, "fast");
}

TEST(Autoscaler, GrowsSlowly) {
  const Job job = growing();
  Autoscaler scaler = settled(measured(), {job});
  EXPECT_TRUE(scaler.round({job}, kStart).at(job.key).add.has_value());
  Job more = job;
  more.summers.push_back({1, "a", 1e9, true, false, absl::Seconds(5), Suitability{true, ""}});
  more.candidates = {machine("b")};
  EXPECT_EQ(scaler.round({more}, kStart + absl::Seconds(59)).at(job.key).code, Code::kPausing);
  EXPECT_TRUE(scaler.round({more}, kStart + absl::Seconds(60)).at(job.key).add.has_value());
}

TEST(Autoscaler, YoungestSummerDatesLastAddition) {
  Job job = growing();
  job.summers[0].age = absl::Seconds(59);
  Autoscaler young(measured());
  EXPECT_EQ(young.round({job}, kStart).at(job.key).code, Code::kPausing);
  job.summers[0].age = absl::Seconds(60);
  Autoscaler old(measured());
  EXPECT_EQ(old.round({job}, kStart).at(job.key).code, Code::kWorthIt);
}

// Returns a job without summers, as in the autoscaler's first round.
Job beginning() {
  Job job = job_of("team/digits", 4, 0);
  measure(job, 2.0, 1.0);
  return job;
}

TEST(Autoscaler, NewJobIsNotPausing) {
  Job job = beginning();
  Autoscaler scaler(measured());
  for (int second = 0; second < 3; ++second) {
    const Verdict verdict = scaler.round({job}, kStart + absl::Seconds(second)).at(job.key);
    EXPECT_EQ(verdict.code, Code::kNoMachine);
    EXPECT_TRUE(absl::StrContains(verdict.why, "no machine has enough to spare")) << verdict.why;
  }
}

TEST(Autoscaler, FirstSummersComeWithoutPause) {
  Job job = beginning();
  Autoscaler scaler(measured());
  scaler.round({job}, kStart);
  job.candidates = {machine("a"), machine("b")};
  EXPECT_EQ(scaler.round({job}, kStart + absl::Seconds(1)).at(job.key).code, Code::kWorthIt);
  job.summers.push_back({0, "", 1e9, false, false, absl::Seconds(1), {}});
  EXPECT_EQ(scaler.round({job}, kStart + absl::Seconds(2)).at(job.key).code, Code::kPausing)
      << "the first job has no machine yet";
  job.summers[0].node = "a";
  job.candidates = {machine("b")};
  EXPECT_EQ(scaler.round({job}, kStart + absl::Seconds(3)).at(job.key).code, Code::kWorthIt);
  job.summers.push_back({1, "b", 1e9, true, false, absl::Seconds(1), Suitability{true, ""}});
  job.candidates.clear();
  EXPECT_EQ(scaler.round({job}, kStart + absl::Seconds(4)).at(job.key).code, Code::kNoMachine);
  job.candidates = {machine("c")};
  EXPECT_EQ(scaler.round({job}, kStart + absl::Seconds(5)).at(job.key).code, Code::kPausing)
      << "the job has had its first summer";
  EXPECT_EQ(scaler.round({job}, kStart + absl::Seconds(63)).at(job.key).code, Code::kWorthIt);
}

TEST(Autoscaler, PauseIsTheLastReason) {
  Job job = growing();
  Autoscaler scaler = settled(measured(), {job});
  ASSERT_TRUE(scaler.round({job}, kStart).at(job.key).add.has_value());
  Job next = job;
  next.summers.push_back({1, "a", 1e9, true, false, absl::Seconds(5), Suitability{true, ""}});
  next.candidates.clear();
  EXPECT_EQ(scaler.round({next}, kStart + absl::Seconds(5)).at(job.key).code, Code::kNoMachine);
  next.candidates = {machine("b")};
  measure(next, 2.0, 0.001);
  EXPECT_EQ(scaler.round({next}, kStart + absl::Seconds(6)).at(job.key).code, Code::kNotWorthIt);
  measure(next, 2.0, 1.0);
  const Verdict verdict = scaler.round({next}, kStart + absl::Seconds(7)).at(job.key);
  EXPECT_EQ(verdict.code, Code::kPausing);
  EXPECT_TRUE(absl::StrContains(verdict.why, "added less than 1m ago")) << verdict.why;
}

TEST(Autoscaler, GivesReasonAgainstFreeMachine) {
  Job job = growing();
  job.candidates = {machine("a")};
  job.candidates[0].spare_cpus.reset();
  EXPECT_TRUE(absl::StrContains(decided(measured(), job).why, "Prometheus has not seen"))
      << decided(measured(), job).why;
  const Job there = job_of("team/digits", 4, 1);
  Job gone = job_of("team/digits", 4, 0);
  gone.candidates = {machine("s0")};
  Autoscaler scaler = settled(Settings(), {there});
  const Verdict verdict = scaler.round({gone}, kStart).at(gone.key);
  EXPECT_TRUE(absl::StrContains(verdict.why, "s0 gets no summer for a while")) << verdict.why;
}

TEST(Autoscaler, SavesOnlyExposedCommunication) {
  Job job = growing();
  measure(job, 2.0, 0.019);  // hidden behind computation, except for less than 1 % of the step
  const Verdict verdict = decided(measured(), job);
  EXPECT_FALSE(verdict.add.has_value());
  EXPECT_EQ(verdict.code, Code::kNotWorthIt);
  measure(job, 2.0, 0.021);
  EXPECT_TRUE(decided(measured(), job).add.has_value());
}

TEST(Autoscaler, ShareIsConfigured) {
  Settings settings = measured();
  const double share = decided(settings, growing()).share;
  settings.min_gain = share * 1.01;
  EXPECT_EQ(decided(settings, growing()).code, Code::kNotWorthIt);
}

TEST(Autoscaler, HoldsWithoutMetrics) {
  Job job = growing();
  job.step_seconds.reset();
  EXPECT_EQ(decided(measured(), job).code, Code::kNoMetrics);
  measure(job, 2.0, 1.0, absl::Seconds(61));
  EXPECT_EQ(decided(measured(), job).code, Code::kStaleMetrics);
  EXPECT_EQ(decided(measured(), job).wanted, 1U);
  job.bytes_per_step = 0;
  EXPECT_EQ(decided(measured(), job).code, Code::kNotPlanned);
  measure(job, 0, -1);
  EXPECT_FALSE(decided(measured(), job).add.has_value());
}

TEST(Autoscaler, IgnoresMachinesWithoutRecentMetrics) {
  Job job = growing();
  job.candidates = {machine("a")};
  job.candidates[0].spare_cpus.reset();
  EXPECT_EQ(decided(measured(), job).code, Code::kNoMachine);
  job.candidates = {machine("a")};
  job.candidates[0].spare_bits_per_second->value = 1e8;  // its spare bandwidth has been much lower recently
  EXPECT_EQ(decided(measured(), job).code, Code::kNoMachine);
  job.candidates = {machine("a")};
  job.candidates[0].spare_cpus->age = absl::Minutes(5);
  EXPECT_EQ(decided(measured(), job).code, Code::kNoMachine);
}

TEST(Autoscaler, ModelDecidesWithoutPrometheus) {
  Job job = job_of("team/digits", 4, 3);
  job.candidates = {{"a", 1e9, {}, {}}};
  EXPECT_TRUE(decided(Settings(), job).add.has_value());
  job = job_of("team/digits", 4, 4);  // the workers' own gradients fill their links
  job.candidates = {{"a", 1e9, {}, {}}};
  EXPECT_EQ(decided(Settings(), job).code, Code::kNotWorthIt);
}

TEST(Autoscaler, KeepsWithinMinimumAndMaximum) {
  Job job = growing();
  measure(job, 2.0, 0);
  job.min = 2;
  EXPECT_EQ(decided(measured(), job).code, Code::kBelowMinimum);
  job.step_seconds.reset();
  EXPECT_TRUE(decided(measured(), job).add.has_value()) << "the minimum needs no gain";
  job = growing();
  job.max = 1;
  EXPECT_EQ(decided(measured(), job).code, Code::kAtMaximum);
  job.max = 0;
  const Verdict verdict = decided(measured(), job);
  ASSERT_THAT(verdict.remove, SizeIs(1));
  EXPECT_EQ(verdict.code, Code::kAboveMaximum);
  EXPECT_EQ(verdict.wanted, 0U);
}

TEST(Autoscaler, OwnersGetMachineAtOnce) {
  Job job = job_of("team/digits", 4, 2);
  job.summers[1].suitability = Suitability{false, "spare CPU 0 is below 0.1"};
  job.candidates = {machine("c")};
  Autoscaler scaler(measured());  // has no metrics and has seen no round before
  const Verdict verdict = scaler.round({job}, kStart).at(job.key);
  ASSERT_THAT(verdict.remove, SizeIs(1));
  EXPECT_EQ(verdict.remove[0].index, 1U);
  EXPECT_EQ(verdict.code, Code::kOwnersNeedIt);
  EXPECT_EQ(verdict.wanted, 1U);
  EXPECT_FALSE(verdict.add.has_value());
}

TEST(Autoscaler, KeepsSummerOfUnknownSuitability) {
  Job job = job_of("team/digits", 4, 2);
  job.summers[1].suitability.reset();
  EXPECT_THAT(decided(measured(), job).remove, IsEmpty());
}

TEST(Autoscaler, MachineOfLostSummerIsPaused) {
  const Job there = job_of("team/digits", 4, 1);
  Job gone = job_of("team/digits", 4, 0);
  gone.candidates = {{"s0", 1e9, {}, {}}};
  for (const bool told : {false, true}) {
    Job before = there;
    before.summers[0].leaving = told;
    Autoscaler scaler = settled(Settings(), {before});
    EXPECT_EQ(scaler.round({gone}, kStart).at(gone.key).add.has_value(), told);
    const absl::Duration rested = kStart + Settings().return_pause;
    EXPECT_EQ(scaler.round({gone}, rested - absl::Seconds(1)).at(gone.key).code,
              told ? Code::kPausing : Code::kNoMachine);
    EXPECT_EQ(scaler.round({gone}, rested).at(gone.key).add.has_value(), !told);
  }
}

// Returns how long the autoscaler avoids a machine whose capacity other processes have needed `times` times.
absl::Duration returns_after(int times) {
  Job needed = job_of("team/digits", 4, 1);
  needed.summers[0].suitability = Suitability{false, "no"};
  Job gone = job_of("team/digits", 4, 0);
  gone.candidates = {{"s0", 1e9, {}, {}}};
  Autoscaler scaler = settled(Settings(), {gone});
  absl::Duration now = kStart;
  for (int i = 0; i < times; ++i) {
    now += absl::Minutes(5);
    needed.summers[0].index = static_cast<uint32_t>(i);
    scaler.round({needed}, now);
  }
  for (absl::Duration later = absl::Seconds(1); later < absl::Hours(1); later += absl::Seconds(1)) {
    if (scaler.round({gone}, now + later).at(gone.key).add.has_value()) return later;
  }
  return absl::InfiniteDuration();
}

TEST(Autoscaler, ReturnsAfterGrowingPause) {
  EXPECT_EQ(returns_after(1), absl::Seconds(30));
  EXPECT_EQ(returns_after(2), absl::Seconds(60));
  EXPECT_EQ(returns_after(3), absl::Seconds(120));
}

TEST(Autoscaler, RemovesIdleSummer) {
  Job job = job_of("team/digits", 4, 2);
  measure(job, 2.0, 0.001);
  Autoscaler scaler = settled(measured(), {job});
  absl::Duration now = kStart;
  EXPECT_THAT(scaler.round({job}, now).at(job.key).remove, IsEmpty()) << "not at once";
  now += absl::Minutes(2);
  const Verdict verdict = scaler.round({job}, now).at(job.key);
  ASSERT_THAT(verdict.remove, SizeIs(1)) << "the autoscaler removes one summer at a time";
  EXPECT_EQ(verdict.code, Code::kBuysNothing);
}

TEST(Autoscaler, KeepsSummersBetweenShares) {
  // The gain of a further summer is small: between `keep` and `worth`. So no summer is removed and none is added.
  Job job = job_of("team/digits", 4, 2);
  measure(job, 2.0, 1.0);
  Settings settings = measured();
  const double share = decided(settings,
                               [] {
                                 Job more = growing();
                                 measure(more, 2.0, 1.0);
                                 return more;
                               }())
                           .share;
  settings.min_gain = 2 * share;
  settings.min_loss = share / 2;
  job.candidates = {machine("c")};
  Autoscaler scaler = settled(settings, {job});
  for (int minute = 0; minute < 30; ++minute) {
    const Verdict verdict = scaler.round({job}, kStart + absl::Minutes(minute)).at(job.key);
    EXPECT_THAT(verdict.remove, IsEmpty());
    EXPECT_FALSE(verdict.add.has_value());
  }
}

TEST(Autoscaler, StaleMetricsDoNotCountAsIdleTime) {
  Job job = job_of("team/digits", 4, 2);
  measure(job, 2.0, 0.001);
  Job stale = job;
  measure(stale, 2.0, 0.001, absl::Minutes(3));
  Autoscaler scaler = settled(measured(), {stale});
  scaler.round({stale}, kStart);
  EXPECT_THAT(scaler.round({stale}, kStart + absl::Minutes(10)).at(job.key).remove, IsEmpty());
  EXPECT_THAT(scaler.round({job}, kStart + absl::Minutes(11)).at(job.key).remove, IsEmpty());
  EXPECT_THAT(scaler.round({job}, kStart + absl::Minutes(13)).at(job.key).remove, SizeIs(1));
}

TEST(Autoscaler, WaitsLongerAfterAWrongRemoval) {
  Job two = job_of("team/digits", 4, 2);
  measure(two, 2.0, 0.001);
  Job one = job_of("team/digits", 4, 1);
  measure(one, 2.0, 1.0);
  one.candidates = {machine("s1")};
  Autoscaler scaler = settled(measured(), {two});
  scaler.round({two}, kStart);
  ASSERT_THAT(scaler.round({two}, kStart + absl::Minutes(2)).at(two.key).remove, SizeIs(1));
  ASSERT_TRUE(scaler.round({one}, kStart + absl::Minutes(4)).at(two.key).add.has_value())
      << "the removed summer was needed";
  scaler.round({two}, kStart + absl::Minutes(5));
  EXPECT_THAT(scaler.round({two}, kStart + absl::Minutes(8)).at(two.key).remove, IsEmpty());
  EXPECT_THAT(scaler.round({two}, kStart + absl::Minutes(9)).at(two.key).remove, SizeIs(1));
}

TEST(Autoscaler, GivesUpSummerThatDoesNotRun) {
  Job job = job_of("team/digits", 4, 2);
  job.summers[1].running = false;
  job.summers[1].node.clear();
  job.summers[1].age = Settings().start_patience;
  EXPECT_THAT(decided(Settings(), job).remove, IsEmpty());
  job.summers[1].age += absl::Seconds(1);
  EXPECT_EQ(decided(Settings(), job).code, Code::kDidNotStart);
}

TEST(Autoscaler, RemovalStandsUntilSummerIsGone) {
  Job job = job_of("team/digits", 4, 2);
  Job needed = job;
  needed.summers[1].suitability = Suitability{false, "no"};
  Autoscaler scaler = settled(Settings(), {job});
  scaler.round({needed}, kStart);
  for (int second = 1; second < 10; ++second) {
    EXPECT_THAT(scaler.round({job}, kStart + absl::Seconds(second)).at(job.key).remove, SizeIs(1));
  }
  job.summers.pop_back();
  EXPECT_THAT(scaler.round({job}, kStart + absl::Seconds(10)).at(job.key).remove, IsEmpty());
}

TEST(Autoscaler, ReportsRemovalOnce) {
  Job job = job_of("team/digits", 4, 2);
  job.summers[1].leaving = true;
  job.summers[1].suitability = Suitability{false, "no"};
  const Verdict verdict = decided(Settings(), job);
  EXPECT_THAT(verdict.remove, IsEmpty());
  EXPECT_EQ(verdict.wanted, 1U);
}

}  // namespace
}  // namespace gleaner::autoscale
