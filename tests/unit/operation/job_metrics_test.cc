// Tests of the metric series of a job: they follow the job, and are removed with it.
#include "operator/service/job_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

namespace gleaner::operation {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class JobMetricsTest : public ::testing::Test {
 protected:
  JobMetricsTest() {
    job_.meta.name = "digits";
    job_.meta.ns = "team";
    job_.status.phase = "Running";
    job_.status.workers_wanted = 4;
  }
  std::string text() const { return prometheus::TextSerializer().Serialize(registry_.Collect()); }

  prometheus::Registry registry_;
  JobMetrics metrics_{registry_};
  api::TrainingJob job_;
};

TEST_F(JobMetricsTest, FollowTheJob) {
  metrics_.update(job_, job_.status, nullptr);
  EXPECT_THAT(text(), HasSubstr("gleaner_jobs{phase=\"Running\"} 1"));
  EXPECT_THAT(text(), HasSubstr("gleaner_job_workers{namespace=\"team\",state=\"wanted\",trainingjob=\"digits\"} 4"));
  EXPECT_THAT(text(), Not(HasSubstr("gleaner_job_efficiency_ratio{"))) << "there are no figures yet";
  job_.status.phase = "Succeeded";
  metrics_.update(job_, job_.status, nullptr);
  EXPECT_THAT(text(), HasSubstr("gleaner_jobs{phase=\"Running\"} 0"));
  EXPECT_THAT(text(), HasSubstr("gleaner_jobs{phase=\"Succeeded\"} 1"));
  EXPECT_THAT(text(), Not(HasSubstr("phase=\"Running\",trainingjob")));
}

TEST_F(JobMetricsTest, FailingJobsShowForHowLong) {
  metrics_.set_failing(job_.meta.key(), absl::Seconds(7));
  EXPECT_THAT(text(), Not(HasSubstr("gleaner_job_reconcile_failing_seconds{"))) << "the job is not known yet";
  metrics_.update(job_, job_.status, nullptr);
  metrics_.set_failing(job_.meta.key(), absl::Seconds(7));
  EXPECT_THAT(text(), HasSubstr("gleaner_job_reconcile_failing_seconds{namespace=\"team\",trainingjob=\"digits\"} 7"));
  metrics_.set_failing(job_.meta.key(), absl::ZeroDuration());
  EXPECT_THAT(text(), HasSubstr("gleaner_job_reconcile_failing_seconds{namespace=\"team\",trainingjob=\"digits\"} 0"));
  metrics_.remove(job_.meta.key());
  EXPECT_THAT(text(), Not(HasSubstr("gleaner_job_reconcile_failing_seconds{")));
}

TEST_F(JobMetricsTest, StepsIncreaseAndRestartWithAnAttempt) {
  coordinator::JobState session;
  session.summary.tensors = 3;
  session.summary.whole.steps = 5;
  metrics_.update(job_, job_.status, &session);
  EXPECT_THAT(text(), HasSubstr("gleaner_job_steps_total{namespace=\"team\",trainingjob=\"digits\"} 5"));
  session.summary.whole.steps = 7;
  metrics_.update(job_, job_.status, &session);
  EXPECT_THAT(text(), HasSubstr("gleaner_job_steps_total{namespace=\"team\",trainingjob=\"digits\"} 7"));
  session.summary.whole.steps = 2;
  metrics_.update(job_, job_.status, &session);
  EXPECT_THAT(text(), HasSubstr("gleaner_job_steps_total{namespace=\"team\",trainingjob=\"digits\"} 2"));
}

TEST_F(JobMetricsTest, FiguresCoverTheLastMinuteAndVanishWithoutSteps) {
  coordinator::JobState session;
  session.summary.tensors = 3;
  session.summary.whole.steps = 500;
  session.summary.whole.efficiency = 0.5;  // of the whole job
  session.summary.plan_bound.seconds = 0.1;
  session.summary.window.steps = 50;
  session.summary.window.goodput_bytes_per_second = 3e6;
  session.summary.window.efficiency = 0.9;
  session.summary.window.bytes_per_step = 1000;
  session.summary.window.dense_bytes_per_step = 2000;
  metrics_.update(job_, job_.status, &session);
  EXPECT_THAT(text(), HasSubstr("gleaner_job_step_bytes{namespace=\"team\",trainingjob=\"digits\"} 1000"));
  EXPECT_THAT(text(), HasSubstr("gleaner_job_step_dense_bytes{namespace=\"team\",trainingjob=\"digits\"} 2000"));
  EXPECT_THAT(text(), HasSubstr("gleaner_job_efficiency_ratio{namespace=\"team\",trainingjob=\"digits\"} 0.9"));
  EXPECT_THAT(text(), HasSubstr("gleaner_job_bound_seconds{namespace=\"team\",trainingjob=\"digits\"} 0.1"));
  session.summary.window.efficiency = 0;  // a step is latency-bound, or a link's speed is unknown
  session.summary.plan_bound.seconds = 0;
  metrics_.update(job_, job_.status, &session);
  EXPECT_THAT(text(), Not(HasSubstr("gleaner_job_efficiency_ratio{")));
  EXPECT_THAT(text(), Not(HasSubstr("gleaner_job_bound_seconds{")));
  EXPECT_THAT(text(), HasSubstr("gleaner_job_goodput_bytes_per_second{"));
}

TEST_F(JobMetricsTest, HasWantedAndPlannedSummersAndTheReason) {
  metrics_.update(job_, job_.status, nullptr);
  EXPECT_THAT(text(), Not(HasSubstr("gleaner_job_summers_wanted{"))) << "the autoscaler has not decided yet";
  job_.status.summers.wanted = 2;
  job_.status.summers.had = 1;
  job_.status.summers.reason = "WorthIt";
  metrics_.update(job_, job_.status, nullptr);
  EXPECT_THAT(text(), HasSubstr("gleaner_job_summers_wanted{namespace=\"team\",trainingjob=\"digits\"} 2"));
  EXPECT_THAT(text(), HasSubstr("gleaner_job_summers_planned{namespace=\"team\",trainingjob=\"digits\"} 1"));
  job_.status.summers.reason = "AtMaximum";
  metrics_.update(job_, job_.status, nullptr);
  EXPECT_THAT(text(), HasSubstr("reason=\"AtMaximum\""));
  EXPECT_THAT(text(), Not(HasSubstr("reason=\"WorthIt\"")));
  metrics_.count_change(job_, "SummerLost", "Evicted");
  metrics_.count_change(job_, "SummerLost", "Evicted");
  EXPECT_THAT(text(),
              HasSubstr("change=\"SummerLost\",namespace=\"team\",reason=\"Evicted\",trainingjob=\"digits\"} 2"));
}

TEST_F(JobMetricsTest, NamesTheStrategiesInForce) {
  job_.communication.strategy = api::Strategy::kTwoLevel;
  coordinator::JobState session;
  session.strategies = {{"summers", 2, 4096}, {"ring", 1, 64}};
  metrics_.update(job_, job_.status, &session);
  EXPECT_THAT(text(), HasSubstr("gleaner_job_info{namespace=\"team\",strategy=\"TwoLevel\","));
  EXPECT_THAT(text(), HasSubstr("gleaner_job_strategy_bytes{namespace=\"team\",strategy=\"summers\","
                                "trainingjob=\"digits\"} 4096"));
  session.strategies = {{"ring", 3, 4160}};
  metrics_.update(job_, job_.status, &session);
  EXPECT_THAT(text(), HasSubstr("strategy=\"ring\",trainingjob=\"digits\"} 4160"));
  EXPECT_THAT(text(), Not(HasSubstr("strategy=\"summers\"")));
}

TEST_F(JobMetricsTest, AreRemovedWithTheJob) {
  coordinator::JobState session;
  session.strategies = {{"ring", 3, 4160}};
  session.summary.tensors = 3;
  session.summary.whole.steps = 5;
  metrics_.update(job_, job_.status, &session);
  metrics_.count_change(job_, "SummerAdded", "WorthIt");
  metrics_.remove("team/digits");
  EXPECT_THAT(text(), Not(HasSubstr("trainingjob=\"digits\"")));
  EXPECT_THAT(text(), HasSubstr("gleaner_jobs{phase=\"Running\"} 0"));
}

}  // namespace
}  // namespace gleaner::operation
