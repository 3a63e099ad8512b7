// Tests of the start of attempts: gangs, deadlines, quotas, and the status while workers can't run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "operator/reconcile/refusal.h"
#include "tests/unit/reconcile/world.h"

namespace gleaner::reconcile {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Start, CreatesWorkersThenOpensGates) {
  World world(3);
  const Actions first = world.look();
  EXPECT_TRUE(first.service);
  EXPECT_THAT(world.names(), ElementsAre("digits-worker-0", "digits-worker-1", "digits-worker-2"));
  for (const std::string& name : world.names()) EXPECT_TRUE(world.pod(name).obstacles.gated) << name;
  EXPECT_FALSE(world.holds("Created"));
  EXPECT_EQ(world.phase(), "Pending");

  world.look();
  EXPECT_TRUE(world.holds("Created"));
  for (const std::string& name : world.names()) EXPECT_FALSE(world.pod(name).obstacles.gated) << name;
  EXPECT_EQ(world.phase(), "Starting");
}

TEST(Start, GatesStayShutWithoutAllWorkers) {
  World world(2);
  world.look();
  world.erase("digits-worker-1");
  const Actions decision = world.look();
  EXPECT_THAT(decision.release, IsEmpty());
  EXPECT_TRUE(world.pod("digits-worker-0").obstacles.gated);
}

TEST(Start, KeepsGatesOfOthers) {
  World world(2);
  world.job.workers.pod_template["spec"]["schedulingGates"] = nlohmann::json::array({{{"name", "queue.example/wait"}}});
  world.look();
  const Actions decision = world.look();
  ASSERT_EQ(decision.release.size(), 2U);
  EXPECT_THAT(decision.release[0].gates, ElementsAre("queue.example/wait"));
}

// Lets each worker request GPUs.
void request_gpus(World& world, nlohmann::json gpus) {
  world.job.workers.pod_template["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = std::move(gpus);
}

std::vector<std::string> messages(const World& world, const std::string& reason) {
  std::vector<std::string> found;
  for (const EventNote& event : world.events) {
    if (event.reason == reason && event.warning) found.push_back(event.message);
  }
  return found;
}

TEST(Start, TellsOnceOfGpusWithoutAProcess) {
  World world(2);
  request_gpus(world, "4");
  world.settle();
  world.run_workers();
  world.settle();
  EXPECT_EQ(world.phase(), "Running") << "the Event is a hint";
  EXPECT_THAT(messages(world, "LocalRanksDiffer"),
              ElementsAre(AllOf(HasSubstr("requests 4 nvidia.com/gpu, but spec.workers.localRanks is 1"),
                                HasSubstr("set localRanks to 4"))));
}

TEST(Start, TellsOfProcessesThatShareGpus) {
  World world(1);
  request_gpus(world, 2);
  world.job.workers.local_ranks = 8;
  world.settle();
  EXPECT_THAT(messages(world, "LocalRanksDiffer"),
              ElementsAre(AllOf(HasSubstr("its processes share GPUs"), HasSubstr("request 8"))));
}

TEST(Start, SaysNothingOfGpusThatMatchOrHaveOtherNames) {
  for (const char* name : {"nvidia.com/gpu", "amd.com/gpu", "nvidia.com/mig-1g.10gb"}) {
    World world(1);
    nlohmann::json& containers = world.job.workers.pod_template["spec"]["containers"];
    // A sidecar with GPUs of its own, whose count is added.
    containers.push_back({{"name", "sidecar"}, {"image", "a"}, {"resources", {{"limits", {{name, 1}}}}}});
    containers[0]["resources"]["limits"][name] = "3";
    world.job.workers.local_ranks = name == std::string("nvidia.com/gpu") ? 4 : 1;
    world.settle();
    EXPECT_THAT(messages(world, "LocalRanksDiffer"), IsEmpty()) << name;
  }
}

TEST(Start, RunsWhenAllWorkersRun) {
  World world(2);
  world.settle();
  world.run("digits-worker-0", "w0");
  world.settle();
  EXPECT_EQ(world.phase(), "Starting");
  EXPECT_FALSE(world.wanted_session.has_value());
  world.run("digits-worker-1", "w1");
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_TRUE(world.noted("Running"));
  ASSERT_TRUE(world.wanted_session.has_value());
  EXPECT_EQ(world.wanted_session->job, "team/digits/0");
  EXPECT_EQ(world.wanted_session->workers, 2U);
  EXPECT_EQ(world.job.status.workers_ready, 2U);
}

TEST(Start, ReleasesLateGang) {
  World world(2);
  world.job.run_policy.start_deadline = absl::Seconds(60);
  world.settle();
  world.run("digits-worker-0", "w0");
  world.pod("digits-worker-1").obstacles.unschedulable = "0/3 nodes are available";
  world.settle();
  EXPECT_THAT(world.condition("Running")->message, HasSubstr("0/3 nodes"));
  world.now += absl::Seconds(61);
  world.look();
  EXPECT_TRUE(world.noted("StartDeadlineExceeded"));
  EXPECT_EQ(world.job.status.attempt, 1U);
  EXPECT_EQ(world.job.status.restarts, 0U) << "waiting for machines is no failure";
  EXPECT_FALSE(world.has("digits-worker-1"));
  EXPECT_TRUE(world.pod("digits-worker-0").deletion.has_value());
  // Other jobs get the chance to use the resources that were released.
  world.erase("digits-worker-0");
  world.settle();
  EXPECT_THAT(world.names(), IsEmpty());
  world.now += absl::Seconds(22);  // the pause is at least three quarters of 30 s
  world.settle();
  EXPECT_THAT(world.names(), IsEmpty());
  world.now += absl::Seconds(17);
  world.settle();
  EXPECT_THAT(world.names(), ElementsAre("digits-worker-0-r1", "digits-worker-1-r1"));
}

TEST(Start, NamesImageThatIsNotPulled) {
  World world(2);
  world.settle();
  world.pod("digits-worker-1").obstacles.waiting_reason = "ImagePullBackOff";
  world.pod("digits-worker-1").obstacles.waiting_message = "Back-off pulling image train:1";
  world.settle();
  EXPECT_EQ(world.condition("Running")->reason, "ImagePullFailed");
  EXPECT_THAT(world.condition("Running")->message, HasSubstr("digits-worker-1"));
  EXPECT_TRUE(world.noted("ImagePullFailed"));
  const size_t events = world.events.size();
  world.look();
  EXPECT_EQ(world.events.size(), events) << "said once";
}

TEST(Start, KeepsRefusalUntilNextTry) {
  World world(2);
  const Observation observation = world.observe();
  const Refusal refusal{"Pod", absl::InternalError("failed calling webhook"), world.now, absl::Seconds(8)};
  world.job.status = *refused_start(observation, decide(observation, {}), 0, refusal).status();
  world.creation_pause = absl::Seconds(8);
  const Actions waiting = world.look();
  EXPECT_THAT(waiting.create, IsEmpty());
  EXPECT_THAT(waiting.release, IsEmpty());
  EXPECT_FALSE(waiting.service);
  EXPECT_EQ(waiting.requeue_after, absl::Seconds(8));
  EXPECT_FALSE(world.holds("Created"));
  EXPECT_THAT(world.condition("Created")->message, HasSubstr("failed calling webhook"));
  EXPECT_THAT(world.condition("Running")->message, HasSubstr("failed calling webhook"));
  world.creation_pause = absl::ZeroDuration();
  world.settle();
  EXPECT_TRUE(world.holds("Created"));
  EXPECT_EQ(world.condition("Running")->message, "workers are being scheduled and started");
}

TEST(Start, WaitsForPodsOfPreviousAttempt) {
  World world(1);
  world.settle();
  world.run_workers();
  world.settle();
  world.exit("digits-worker-0", 137);
  world.pod("digits-worker-0").phase = PodView::Phase::kRunning;  // a pod of the old attempt still runs
  world.pod("digits-worker-0").ending.exit.reset();
  world.job.status.attempt = 1;
  world.job.status.conditions.clear();
  world.settle();
  EXPECT_TRUE(world.pod("digits-worker-0").deletion.has_value());
  EXPECT_FALSE(world.has("digits-worker-0-r1"));
  world.now = *world.pod("digits-worker-0").deletion + absl::Seconds(31);  // the machine of the pod does not answer
  world.settle();
  EXPECT_TRUE(world.has("digits-worker-0-r1"));
}

TEST(Start, InvalidTemplateFailsJob) {
  World world(2);
  world.job.workers.pod_template["spec"]["affinity"] = {{"podAffinity", "near"}};
  world.settle();
  EXPECT_EQ(world.phase(), "Failed");
  EXPECT_EQ(world.condition("Failed")->reason, "InvalidTemplate");
  EXPECT_THAT(world.names(), IsEmpty());
}

TEST(Start, OneWorkerNeedsNoGate) {
  World world(1);
  world.look();
  EXPECT_FALSE(world.pod("digits-worker-0").obstacles.gated);
}

}  // namespace
}  // namespace gleaner::reconcile
