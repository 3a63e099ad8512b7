// Tests of failures: which of them end an attempt, are retried, and count towards backoffLimit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/reconcile/world.h"

namespace gleaner::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kLater = absl::Seconds(10);

World running_with_members(uint32_t workers = 2) {
  World world(workers);
  world.settle();
  world.run_workers();
  world.settle();
  world.session.emplace();
  coordinator::MemberState member;
  member.joined = true;
  world.session->members.assign(workers, member);
  return world;
}

void expect_restarted(World& world, uint32_t restarts) {
  EXPECT_EQ(world.phase(), "Restarting");
  EXPECT_EQ(world.job.status.attempt, 1U);
  EXPECT_EQ(world.job.status.restarts, restarts);
  EXPECT_TRUE(world.noted("Restarting"));
}

TEST(Failure, ExitCodeBelow128IsFinal) {
  World world = running_with_members();
  world.exit("digits-worker-1", 2);
  world.now += kLater;
  world.settle();
  EXPECT_EQ(world.phase(), "Failed");
  EXPECT_EQ(world.condition("Failed")->reason, "ContainerFailed");
  EXPECT_THAT(world.condition("Failed")->message, HasSubstr("digits-worker-1"));
  EXPECT_THAT(world.condition("Failed")->message, HasSubstr("ended with 2"));
}

TEST(Failure, SignalRestartsJob) {
  World world = running_with_members();
  world.exit("digits-worker-1", 137, "OOMKilled");
  world.now += kLater;
  world.look();
  expect_restarted(world, 1);
  EXPECT_EQ(world.condition("Restarting")->reason, "OutOfMemory");
  EXPECT_TRUE(world.pod("digits-worker-0").deletion.has_value()) << "all workers restart";
  EXPECT_THAT(world.ended_sessions, ElementsAre(HasSubstr("137")));
}

TEST(Failure, FirstFailureDecides) {
  World world = running_with_members(3);
  world.exit("digits-worker-0", 1);  // its error, "worker 2 is lost", is a consequence
  world.exit("digits-worker-2", 137);
  world.now += kLater;
  world.look();
  expect_restarted(world, 1);
  EXPECT_THAT(world.condition("Restarting")->message, HasSubstr("digits-worker-2"));
}

TEST(Failure, WaitsForExitStatusOfCause) {
  World world = running_with_members();
  world.exit("digits-worker-0", 1);
  const Actions decision = world.look();
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_EQ(decision.requeue_after, absl::Seconds(1));
  world.pod("digits-worker-1").deletion = world.now;  // it was drained, which is the reason of the failure
  world.now += kLater;
  world.look();
  expect_restarted(world, 0);
}

TEST(Failure, GivesUpAfterLimit) {
  World world = running_with_members();
  world.job.run_policy.backoff_limit = 2;
  for (uint32_t attempt = 0; attempt < 3; ++attempt) {
    const std::string name = attempt == 0 ? "digits-worker-0" : "digits-worker-0-r" + std::to_string(attempt);
    world.exit(name, 143);
    world.now += kLater;
    world.look();
    if (attempt == 2) break;
    for (const std::string& old : world.names()) world.erase(old);
    world.now += absl::Minutes(6);
    world.settle();
    world.run_workers();
    world.settle();
    EXPECT_EQ(world.phase(), "Running");
    EXPECT_FALSE(world.holds("Restarting"));
  }
  EXPECT_EQ(world.phase(), "Failed");
  EXPECT_EQ(world.condition("Failed")->reason, "BackoffLimitExceeded");
  EXPECT_EQ(world.job.status.restarts, 2U);
}

TEST(Failure, PausesGrowWithRestarts) {
  World world = running_with_members(1);
  world.exit("digits-worker-0", 139);
  world.now += kLater;
  world.job.status.retries = 3;  // so the pause is that of the fourth try, from 6 to 10 s
  world.look();
  EXPECT_EQ(world.job.status.retries, 4U);
  EXPECT_THAT(world.condition("Created")->message,
              HasSubstr("the next attempt begins at " + api::format_time(*world.job.status.next_start_time)));
  world.now += absl::Seconds(5);
  world.look();
  EXPECT_FALSE(world.has("digits-worker-0-r1"));
  world.now += absl::Seconds(6);
  world.look();
  EXPECT_FALSE(world.job.status.next_start_time.has_value());
  EXPECT_TRUE(world.has("digits-worker-0-r1"));
}

TEST(Failure, EvictionsDoNotCountAsFailures) {
  World world = running_with_members();
  world.pod("digits-worker-0").ending.evicted_by = "EvictionByEvictionAPI";
  world.pod("digits-worker-0").phase = PodView::Phase::kFailed;
  world.job.run_policy.backoff_limit = 0;
  world.look();
  expect_restarted(world, 0);
  EXPECT_EQ(world.condition("Restarting")->reason, "Evicted");
}

// A reason for which a kubelet ends a pod, and how a job with backoffLimit 0 goes on.
struct KubeletCase {
  const char* reason;
  bool node_is_ready;
  const char* phase;
};

TEST(Failure, KubeletsRefusalsCountUnlessTheNodeIsLost) {
  const std::vector<KubeletCase> cases = {{"OutOfcpu", true, "Failed"},
                                          {"NodeAffinity", true, "Failed"},
                                          {"UnexpectedAdmissionError", true, "Failed"},
                                          {"Evicted", true, "Failed"},
                                          {"", true, "Failed"},
                                          {"OutOfcpu", false, "Restarting"},
                                          {"Evicted", false, "Restarting"},
                                          {"", false, "Restarting"}};
  for (const KubeletCase& each : cases) {
    World world = running_with_members();
    world.job.run_policy.backoff_limit = 0;
    world.nodes["w0"] = {true, each.node_is_ready, 0};
    PodView& pod = world.pod("digits-worker-0");
    pod.phase = PodView::Phase::kFailed;
    pod.ending.refused_by = each.reason;
    pod.ending.refusal = "Node didn't have enough resource";
    world.look();
    EXPECT_EQ(world.phase(), each.phase) << each.reason;
    EXPECT_EQ(world.job.status.restarts, 0U);
    const api::Condition* told = world.condition(each.node_is_ready ? "Failed" : "Restarting");
    EXPECT_THAT(told->message, HasSubstr("pod digits-worker-0 on node w0")) << each.reason;
    if (*each.reason == '\0') continue;
    EXPECT_THAT(told->message, HasSubstr("Node didn't have enough resource"));
  }
}

TEST(Failure, OwnEvictionCountsWhateverTheExitCode) {
  World world = running_with_members();
  PodView& pod = world.pod("digits-worker-0");
  pod.ending.refused_by = "Evicted";
  world.exit("digits-worker-0", 1);
  world.now += kLater;
  world.look();
  expect_restarted(world, 1);
  EXPECT_EQ(world.condition("Restarting")->reason, "Evicted");
}

TEST(Failure, MissingPodIsConfirmedFirst) {
  World world = running_with_members();
  world.erase("digits-worker-1");
  const Actions decision = world.look();
  EXPECT_THAT(decision.confirm_missing, ElementsAre("digits-worker-1"));
  expect_restarted(world, 0);
}

TEST(Failure, LostNodeIsInterruption) {
  World world = running_with_members();
  world.session->outcome = absl::UnavailableError("worker 1 is lost: silent for 10 s");
  world.session->culprit = {coordinator::Role::kWorker, 1};
  world.look();
  EXPECT_EQ(world.phase(), "Running") << "the cause is not known yet";
  world.nodes["w1"] = {true, false, 0};
  world.look();
  expect_restarted(world, 0);
  EXPECT_EQ(world.condition("Restarting")->reason, "NodeLost");
}

TEST(Failure, ErrorsOfOthersWaitForCause) {
  World world = running_with_members();
  world.session->outcome = absl::UnavailableError("worker 1 is lost: silent for 10 s");
  world.session->culprit = {coordinator::Role::kWorker, 1};
  world.exit("digits-worker-0", 1);
  world.now += kLater;
  world.look();
  EXPECT_EQ(world.phase(), "Running");
  world.session_ended_for = absl::Seconds(21);
  world.look();
  expect_restarted(world, 1);
  EXPECT_EQ(world.condition("Restarting")->reason, "MemberLost");
}

TEST(Failure, EvictedSummerIsInterruption) {
  World world(2);
  // Two workers gain nothing from a summer, so they get one only if it is required.
  world.job.communication.summers.min = world.job.communication.summers.max = 1;
  world.spare = {{"s0", 1e9}};
  world.settle();
  world.run_workers();
  world.settle();
  world.run("digits-summer-0", "s0");
  world.settle();
  world.session.emplace();
  world.session->phase = coordinator::JobState::Phase::kRunning;
  coordinator::MemberState member;
  member.joined = true;
  world.session->members.assign(3, member);
  world.pod("digits-summer-0").deletion = world.now;
  world.look();
  EXPECT_EQ(world.phase(), "Running") << "the lost summer may be replaced";
  world.session->outcome = absl::UnavailableError("summer 0 is lost");
  world.session->culprit = {coordinator::Role::kSummer, 0};
  world.exit("digits-worker-0", 1);
  world.exit("digits-worker-1", 1);
  world.now += kLater;
  world.look();
  expect_restarted(world, 0);
  EXPECT_THAT(world.condition("Restarting")->message, HasSubstr("digits-summer-0"));
}

TEST(Failure, JobWithoutLibraryIsNotFailed) {
  World world = running_with_members();
  world.session->members.assign(2, {});
  world.session->outcome = absl::DeadlineExceededError("nobody came");
  world.session_ended_for = absl::Minutes(1);
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
}

TEST(Failure, WrongClockDoesNotStopRestart) {
  World world = running_with_members(1);
  world.exit("digits-worker-0", 1);
  world.pod("digits-worker-0").ending.exit->at = world.now + absl::Hours(5);
  world.look();
  EXPECT_EQ(world.phase(), "Failed");
}

}  // namespace
}  // namespace gleaner::reconcile
