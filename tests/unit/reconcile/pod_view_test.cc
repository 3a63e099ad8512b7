// Tests of reading pods as the API server writes them.
#include "operator/reconcile/pod_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::reconcile {
namespace {

using nlohmann::json;

json base() {
  return json::parse(R"({"apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "digits-worker-1", "namespace": "team", "uid": "p1", "creationTimestamp": "2026-01-02T03:04:05Z",
      "labels": {"gleaner.dev/job": "digits", "gleaner.dev/role": "worker", "gleaner.dev/index": "1", "gleaner.dev/attempt": "2"},
      "annotations": {"kubernetes.io/egress-bandwidth": "200M", "kubernetes.io/ingress-bandwidth": "100M"},
      "ownerReferences": [{"apiVersion": "gleaner.dev/v1alpha1", "kind": "TrainingJob", "name": "digits", "uid": "j1",
                           "controller": true}]},
    "spec": {"nodeName": "n3", "containers": [{"name": "main"}]},
    "status": {"phase": "Running", "podIP": "10.1.2.3"}})");
}

PodView parsed(const json& object) {
  const auto pod = parse_pod(object);
  EXPECT_TRUE(pod.ok()) << pod.status();
  return pod.ok() ? *pod : PodView{};
}

TEST(PodView, ReadsIdentityAndPlace) {
  const PodView pod = parsed(base());
  EXPECT_EQ(pod.job, "digits");
  EXPECT_EQ(pod.role, "worker");
  EXPECT_EQ(pod.index, 1U);
  EXPECT_EQ(pod.attempt, 2U);
  EXPECT_EQ(pod.owner_uid, "j1");
  EXPECT_EQ(pod.node, "n3");
  EXPECT_EQ(pod.phase, PodView::Phase::kRunning);
  EXPECT_EQ(pod.bits_per_second, 100e6) << "the smaller annotation counts";
  EXPECT_FALSE(pod.obstacles.gated);
}

TEST(PodView, ReadsFirstFailedContainer) {
  json object = base();
  object["status"] = json::parse(R"({"phase": "Failed", "containerStatuses": [
    {"name": "side", "state": {"terminated": {"exitCode": 143, "reason": "Error", "finishedAt": "2026-01-02T03:05:09Z"}}},
    {"name": "main", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-01-02T03:05:08Z"}}},
    {"name": "good", "state": {"terminated": {"exitCode": 0, "finishedAt": "2026-01-02T03:05:00Z"}}}]})");
  const PodView pod = parsed(object);
  ASSERT_TRUE(pod.ending.exit.has_value());
  EXPECT_EQ(pod.ending.exit->container, "main");
  EXPECT_EQ(pod.ending.exit->code, 137);
  EXPECT_EQ(pod.ending.exit->reason, "OOMKilled");
}

TEST(PodView, ReadsReasonOfWaiting) {
  json object = base();
  object["status"] = json::parse(R"({"phase": "Pending", "containerStatuses": [
    {"name": "main", "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}]})");
  EXPECT_EQ(parsed(object).obstacles.waiting_reason, "ErrImagePull");
  object["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] = "ContainerCreating";
  EXPECT_EQ(parsed(object).obstacles.waiting_reason, "") << "ContainerCreating is no error";
}

TEST(PodView, ReadsCauseOfEviction) {
  json object = base();
  object["status"]["conditions"] =
      json::parse(R"([{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}])");
  EXPECT_EQ(parsed(object).ending.evicted_by, "PreemptionByScheduler");
  object = base();
  object["status"] = {{"phase", "Failed"}, {"reason", "Terminated"}};
  EXPECT_EQ(parsed(object).ending.evicted_by, "Terminated");
}

TEST(PodView, ReadsKubeletsRefusal) {
  for (const char* reason : {"Evicted", "OutOfcpu", "NodeAffinity", "DeadlineExceeded"}) {
    json object = base();
    object["status"] = {{"phase", "Failed"}, {"reason", reason}, {"message", "no room"}};
    EXPECT_EQ(parsed(object).ending.evicted_by, "");
    EXPECT_EQ(parsed(object).ending.refused_by, reason);
    EXPECT_EQ(parsed(object).ending.refusal, "no room");
    object["status"]["conditions"] =
        json::parse(R"([{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}])");
    EXPECT_EQ(parsed(object).ending.evicted_by, "TerminationByKubelet") << "the machine's own needs come first";
  }
}

TEST(PodView, DistinguishesGates) {
  json object = base();
  object["spec"]["schedulingGates"] = json::parse(R"([{"name": "a/b"}, {"name": "gleaner.dev/gang"}])");
  const PodView pod = parsed(object);
  EXPECT_TRUE(pod.obstacles.gated);
  EXPECT_THAT(pod.obstacles.other_gates, ::testing::ElementsAre("a/b"));
}

TEST(PodView, MalformedPodsAreHandled) {
  for (const char* status : {"[]", "null", R"({"containerStatuses": 3})", R"({"conditions": [1, "x", {"type": 5}]})",
                             R"({"containerStatuses": [{"state": {"terminated": {"exitCode": "x"}}}]})"}) {
    json object = base();
    object["status"] = json::parse(status);
    object["spec"] = 7;
    EXPECT_EQ(parsed(object).phase, PodView::Phase::kPending) << status;
  }
  EXPECT_FALSE(parse_pod(json::array()).ok());
}

}  // namespace
}  // namespace gleaner::reconcile
