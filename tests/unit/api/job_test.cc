// Tests of TrainingJobs as users write them, and of invalid ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/api/samples.h"

namespace gleaner::api {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json small_job() {
  return json::parse(R"({
    "apiVersion": "gleaner.dev/v1alpha1", "kind": "TrainingJob",
    "metadata": {"name": "digits", "namespace": "team"},
    "spec": {"workers": {"template": {"spec": {"containers": [{"name": "train", "image": "example:1"}]}}}}})");
}

std::string refusal(const char* pointer, const json& value) {
  json object = small_job();
  object[json::json_pointer(pointer)] = value;
  const auto job = parse_training_job(object);
  return job.ok() ? "nothing wrong" : std::string(job.status().message());
}

TEST(TrainingJobTest, TheSmallestJobHasTheDefaults) {
  const auto job = parse_training_job(small_job());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->meta.key(), "team/digits");
  EXPECT_EQ(job->workers.replicas, 1U);
  EXPECT_EQ(job->communication.summers.max, 0U);
  EXPECT_EQ(job->run_policy.backoff_limit, 3U);
  EXPECT_EQ(job->run_policy.start_deadline, absl::Minutes(10));
  EXPECT_EQ(job->run_policy.active_deadline, std::nullopt);
  EXPECT_EQ(job->communication.summers.resources["requests"]["cpu"], "2m");
}

TEST(TrainingJobTest, ReadsUnits) {
  json object = small_job();
  object["spec"]["communication"] = {{"partitionBytes", "256Ki"}, {"summers", {{"max", 2}, {"bandwidth", "2.5Gbit"}}}};
  const auto job = parse_training_job(object);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->communication.partition_bytes, 262144U);
  EXPECT_EQ(job->communication.summers.bits_per_second, 2.5e9);
  EXPECT_EQ(to_json(*job)["spec"]["communication"]["summers"]["bandwidth"], "2500Mbit");
}

TEST(TrainingJobTest, NamesTheWrongField) {
  EXPECT_EQ(refusal("/spec/workers/replicas", "four"),
            "spec.workers.replicas: expected a whole number from 1 to 4096, got \"four\"");
  EXPECT_EQ(refusal("/spec/workers/replicas", 2.5),
            "spec.workers.replicas: expected a whole number from 1 to 4096, got 2.5");
  EXPECT_EQ(refusal("/spec/runPolicy/backoffLimit", -1),
            "spec.runPolicy.backoffLimit: expected a whole number from 0 to 10000, got -1");
  EXPECT_EQ(refusal("/spec/runPolicy/cleanPodPolicy", "Some"),
            "spec.runPolicy.cleanPodPolicy: expected one of None, Running, All, got \"Some\"");
  EXPECT_EQ(refusal("/spec/communication/summers/bandwidth", "fast"),
            "spec.communication.summers.bandwidth: expected a bandwidth above zero, such as \"25Gbit\", got \"fast\"");
  EXPECT_EQ(
      refusal("/spec/communication/summers/resources", {{"limits", {{"cpu", "much"}}}}),
      "spec.communication.summers.resources.limits.cpu: expected a quantity such as \"250m\", \"512Mi\" or 4, got "
      "\"much\"");
  EXPECT_EQ(refusal("/spec/workers/template/spec/containers", json::array()),
            "spec.workers.template.spec.containers: expected a list of at least one container");
  EXPECT_EQ(refusal("/spec/workers", json::object()),
            "spec.workers.template.spec.containers: expected a list of at least one container");
  EXPECT_EQ(refusal("/status/startTime", "noon"),
            "status.startTime: expected a time such as \"2026-01-31T12:00:00Z\", got \"noon\"");
  EXPECT_EQ(refusal("/metadata/labels", {{"a", 1}}), "metadata.labels.a: expected a string, got 1");
  EXPECT_EQ(refusal("/status/conditions", {{{"type", "Running"}, {"status", "Perhaps"}}}),
            "status.conditions[0].status: expected one of True, False, got \"Perhaps\"");
}

TEST(TrainingJobTest, RefusesContradictoryFields) {
  EXPECT_EQ(refusal("/spec/communication/summers/min", 3),
            "spec.communication.summers.min: expected at most max, which is 0, got 3");
  EXPECT_EQ(refusal("/spec/communication", {{"strategy", "Colocated"}, {"summers", {{"max", 2}}}}),
            "spec.communication.strategy: Colocated has no summers, and summers.max is 2");
}

TEST(TrainingJobTest, ReadsTheStrategyWithItsOptions) {
  json object = small_job();
  object["spec"]["communication"] = {{"strategy", "BlueConnect"}, {"stages", {3, 2, 2}}};
  const auto job = parse_training_job(object);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(to_string(job->communication.strategy), "BlueConnect");
  EXPECT_EQ(job->communication.stages, (std::vector<uint32_t>{3, 2, 2}));
  EXPECT_FALSE(uses_summers(job->communication.strategy));
  EXPECT_EQ(refusal("/spec/communication/stages", {2, 0}),
            "spec.communication.stages[1]: expected a whole number from 1 to 4096, got 0");
  EXPECT_EQ(refusal("/spec/communication/stages", json(std::vector<int>(13, 1))),
            "spec.communication.stages: expected at most 12 stages, got 13");
  EXPECT_EQ(refusal("/spec/communication/radix", 1),
            "spec.communication.radix: expected a whole number from 2 to 4096, got 1");
}

TEST(TrainingJobTest, PartitionsAreWholeBytesFrom4KiTo4Mi) {
  for (const json& good : {json("4Ki"), json(4096), json("4Mi"), json("100k"), json(4194304)}) {
    EXPECT_EQ(refusal("/spec/communication/partitionBytes", good), "nothing wrong") << good;
  }
  for (const json& bad : {json("4Kib"), json(4095), json("5Mi"), json("4096500m"), json(0), json(true), json("")}) {
    EXPECT_THAT(refusal("/spec/communication/partitionBytes", bad), HasSubstr("spec.communication.partitionBytes: "))
        << bad;
  }
}

TEST(TrainingJobTest, ReadsCompressionAndFusion) {
  EXPECT_EQ(parse_training_job(small_job())->communication.fusion_bytes, 0U);
  json object = small_job();
  for (const auto& [fusion, bytes] :
       {std::pair{json("4Mi"), uint64_t{4194304}}, {json(1), 1}, {json("Auto"), kFuseAuto}, {json("Max"), kFuseAll}}) {
    object["spec"]["communication"] = {{"compression", "FP16"}, {"fusion", fusion}};
    const auto job = parse_training_job(object);
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(job->communication.compression, Compression::kFp16);
    EXPECT_EQ(job->communication.fusion_bytes, bytes);
    EXPECT_EQ(parse_training_job(to_json(*job))->communication, job->communication);
  }
  EXPECT_EQ(refusal("/spec/communication/compression", "fp16"),
            "spec.communication.compression: expected one of None, FP16, BF16, Int8, Dithering, "
            "OneBit, TopK, RandomK, got \"fp16\"");
  for (const json& bad :
       {json(0), json(-1), json("0"), json("500m"), json("max"), json("Auto "), json("4MiB"), json(true)}) {
    EXPECT_THAT(refusal("/spec/communication/fusion", bad), HasSubstr("spec.communication.fusion: ")) << bad;
  }
}

TEST(TrainingJobTest, AValueThatIsNoObjectIsRefused) {
  EXPECT_EQ(parse_training_job(json::array()).status().message(), "the document: expected an object, got []");
  EXPECT_EQ(refusal("/spec", 5), "spec: expected an object, got 5");
  EXPECT_THAT(refusal("/status/conditions", "none"), HasSubstr("status.conditions: expected a list"));
}

TEST(TrainingJobTest, WritesTheColumnOfReadyWorkers) {
  TrainingJobStatus status;
  status.workers_wanted = 4;
  status.workers_ready = 1;
  status.workers_succeeded = 2;
  EXPECT_EQ(to_json(status)["workers"], "3/4");
}

TEST(TrainingJobTest, ClearedTimesAreNotWritten) {
  TrainingJobStatus status = filled_job().status;
  status.start_time.reset();
  status.completion_time.reset();
  EXPECT_FALSE(to_json(status).contains("startTime"));
  EXPECT_FALSE(to_json(status).contains("completionTime"));
}

}  // namespace
}  // namespace gleaner::api
