// Tests of which changes of a ReductionPlan are written immediately.
#include "operator/service/report_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/manual_clock.h"
#include "tests/unit/operation/fakes.h"

namespace gleaner::operation {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ReportWriter, BytesOfStepWaitForInterval) {
  ManualClock clock;
  Log log{{"test", LogLevel::kOff}};
  FakeClient client;
  ReportWriter writer(Env{&clock, nullptr, &log}, client);
  api::TrainingJob job;
  job.meta.name = "digits";
  api::TrainingJobStatus status;
  status.communication.goodput = "2.0 MB/s";
  ASSERT_TRUE(writer.write_status(job, status).ok());  // a change of figures alone begins the interval
  client.calls.clear();
  api::ReductionPlan observed, plan;
  plan.meta.name = "digits";
  plan.spec.epoch = 1;
  plan.spec.bytes_per_step = plan.spec.push_bytes_per_step = plan.spec.dense_bytes_per_step = 1000;
  observed = plan;
  plan.spec.bytes_per_step = plan.spec.push_bytes_per_step = plan.spec.dense_bytes_per_step = 1001;
  ASSERT_TRUE(writer.write_plan(observed, plan).ok());
  EXPECT_THAT(client.calls, IsEmpty());
  clock.advance(absl::Seconds(10));
  ASSERT_TRUE(writer.write_plan(observed, plan).ok());
  EXPECT_THAT(client.calls, ElementsAre("apply reductionplans digits", "apply reductionplans digits status"));
}

}  // namespace
}  // namespace gleaner::operation
