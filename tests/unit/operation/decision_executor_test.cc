// Tests of the execution of decisions, with fakes of the API server and of the coordinator service.
#include "operator/service/decision_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "common/strategy/rank_maps.h"
#include "common/topology/builders.h"
#include "operator/reconcile/draft.h"
#include "operator/reconcile/pauses.h"
#include "tests/manual_clock.h"
#include "tests/unit/operation/fakes.h"

namespace gleaner::operation {
namespace {

using nlohmann::json;
using reconcile::Draft;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr CreationBackoff::Kind kWorkers = CreationBackoff::Kind::kWorkers;

json pod(const std::string& name) { return {{"metadata", {{"name", name}}}}; }

// Returns an object of the namespace that an object of this kind, "owner", controls; an empty kind: it has no owner.
json owned_by(const char* kind, const std::string& name, const std::string& owner_kind, const std::string& owner_uid) {
  json object = {{"kind", kind}, {"metadata", {{"name", name}, {"namespace", "team"}}}};
  if (owner_kind.empty()) return object;
  object["metadata"]["ownerReferences"] =
      json::array({{{"kind", owner_kind}, {"name", "owner"}, {"uid", owner_uid}, {"controller", true}}});
  return object;
}

json leaving(json object) {
  object["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z";
  return object;
}

api::TrainingJob digits() {
  api::TrainingJob job;
  job.meta.ns = "team";
  job.meta.name = "digits";
  job.meta.uid = "job-uid";
  job.workers.replicas = 2;
  job.status.start_time = absl::UnixEpoch();
  return job;
}

// The draft of a decision, and the update of the job's status that goes with it.
struct Proposal {
  explicit Proposal(const api::TrainingJob& proposed) : job(proposed), update(proposed, absl::UnixEpoch()) {}
  reconcile::Decision decision() const { return finish(job, draft, update); }

  api::TrainingJob job;
  Draft draft;
  reconcile::StatusUpdate update;
};

// Returns a proposal to change nothing but the status.
Proposal quiet(const api::TrainingJob& job) {
  Proposal proposal(job);
  proposal.update.status.workers_ready = 1;
  proposal.update.add_event(false, "Running", "all 2 workers run");
  return proposal;
}

Proposal busy(const api::TrainingJob& job) {
  Proposal proposal = quiet(job);
  proposal.draft.create = {pod("digits-worker-0"), pod("digits-worker-1")};
  proposal.draft.session.emplace().job = "team/digits/0";
  proposal.draft.remove = {{"old", "uid"}};
  return proposal;
}

class Execution : public ::testing::Test {
 protected:
  Outcome carry_out(const Proposal& proposal) { return carry_out(proposal.decision()); }
  Outcome carry_out(const reconcile::Decision& decision) {
    reconcile::Observation observation;
    observation.job = job_;
    return executor_.carry_out(observation, decision);
  }

  ManualClock clock_;
  Log log_{{"test", LogLevel::kOff}};
  Env env_{&clock_, nullptr, &log_};
  api::TrainingJob job_ = digits();
  FakeClient client_;
  FakeSessions service_;
  FakeEvents events_;
  prometheus::Registry registry_;
  JobMetrics metrics_{registry_};
  IdentityStore identities_{
      env_, client_, "gleaner-system", {}, std::filesystem::temp_directory_path(), [](const std::string&) {
        return std::nullopt;
      }};
  CoordinatedSessions sessions_{env_, service_};
  ReportWriter reports_{env_, client_};
  CreationBackoff backoff_{env_};
  DecisionExecutor executor_{{env_, client_, identities_, sessions_, reports_, backoff_, events_, metrics_}};
};

TEST_F(Execution, RunsStepsInOrder) {
  const Proposal proposal = busy(job_);
  const Outcome outcome = carry_out(proposal);
  EXPECT_TRUE(outcome.failure.ok()) << outcome.failure;
  EXPECT_EQ(outcome.done, proposal.decision().steps().size());
  EXPECT_THAT(client_.calls,
              ElementsAre("apply configmaps gleaner-bootstrap", "create services digits", "create pods digits-worker-0",
                          "create pods digits-worker-1", "remove pods old", "replace trainingjobs digits status"));
  EXPECT_THAT(service_.calls, ElementsAre("add team/digits/0"));
  EXPECT_THAT(events_.reasons, ElementsAre("Running"));
}

TEST_F(Execution, StopsIfMissingPodExists) {
  Proposal proposal = busy(job_);
  proposal.draft.confirm_missing = {"digits-worker-1"};
  EXPECT_TRUE(absl::IsAborted(carry_out(proposal).failure));
  EXPECT_THAT(client_.calls, ElementsAre("get pods digits-worker-1"));
}

TEST_F(Execution, StopsIfNewAttemptIsNotWritten) {
  Proposal proposal = busy(job_);
  proposal.update.status.attempt = 1;
  client_.errors["replace trainingjobs digits status"] = absl::AbortedError("the job has changed");
  EXPECT_TRUE(absl::IsAborted(carry_out(proposal).failure));
  EXPECT_THAT(client_.calls, ElementsAre("replace trainingjobs digits status"));
  EXPECT_THAT(events_.reasons, IsEmpty());
}

TEST_F(Execution, StopsIfEndIsNotWritten) {
  client_.errors["replace trainingjobs digits status"] = absl::AbortedError("the job has changed");
  for (const char* phase : {"Succeeded", "Failed"}) {
    Proposal proposal = quiet(job_);
    proposal.update.set_condition(phase, true, "Finished", "");
    proposal.draft.remove = {{"digits-worker-0", "uid"}};
    client_.calls.clear();
    EXPECT_TRUE(absl::IsAborted(carry_out(proposal).failure));
    EXPECT_THAT(client_.calls, ElementsAre("replace trainingjobs digits status")) << phase;
  }
}

TEST_F(Execution, RemovesPodsAndWritesStatusAfterFailure) {
  client_.errors["create pods digits-worker-0"] = absl::UnavailableError("try again");
  const Outcome outcome = carry_out(busy(job_));
  EXPECT_TRUE(absl::IsUnavailable(outcome.failure));
  EXPECT_THAT(client_.calls, Contains("remove pods old"));
  EXPECT_THAT(client_.calls, Contains("replace trainingjobs digits status"));
  EXPECT_THAT(client_.calls, Not(Contains("create pods digits-worker-1")));
  EXPECT_THAT(service_.calls, Contains("add team/digits/0")) << "members that run need no new pods";
  EXPECT_THAT(events_.reasons, ElementsAre("Running")) << "the status that shows the same is written";
}

TEST_F(Execution, RefusalReplacesStatus) {
  client_.errors["create pods digits-worker-0"] = absl::ResourceExhaustedError("exceeded quota: team");
  const reconcile::Decision decision = busy(job_).decision();
  const Outcome outcome = carry_out(decision);
  EXPECT_TRUE(outcome.failure.ok()) << outcome.failure;
  EXPECT_TRUE(outcome.refused);
  EXPECT_EQ(api::find_condition(outcome.status.conditions, "Created")->reason, "QuotaExceeded");
  EXPECT_EQ(outcome.requeue_after, reconcile::pause_after(reconcile::kRefusalPauses, 1, job_.meta.uid));
  EXPECT_EQ(api::find_condition(decision.status()->conditions, "Created"), nullptr) << "the decision stays";
  EXPECT_THAT(events_.reasons, ElementsAre("Running", "QuotaExceeded"));
  EXPECT_THAT(client_.calls,
              ElementsAre("apply configmaps gleaner-bootstrap", "create services digits", "create pods digits-worker-0",
                          "remove pods old", "replace trainingjobs digits status"));
}

TEST_F(Execution, RefusalIsRecordedWithoutStatus) {
  client_.errors["create pods digits-worker-0"] = absl::ResourceExhaustedError("exceeded quota: team");
  client_.errors["replace trainingjobs digits status"] = absl::AbortedError("the job has changed");
  EXPECT_TRUE(absl::IsAborted(carry_out(busy(job_)).failure));
  EXPECT_THAT(events_.reasons, ElementsAre("QuotaExceeded")) << "the decision's own Events wait for the next try";
}

// The object whose creation is refused, the API server's answer, and the reason in the status and the Event.
struct RefusalCase {
  const char* call;
  absl::Status answer;
  const char* reason;
};

TEST_F(Execution, RefusalsQuoteServer) {
  const std::vector<RefusalCase> cases = {
      {"create pods digits-worker-0", absl::InternalError("failed calling webhook \"w\": connection refused"),
       "PodRefused"},
      {"create pods digits-worker-1", absl::InternalError("failed calling webhook \"w\": no endpoints"), "PodRefused"},
      {"create pods digits-worker-0", absl::DeadlineExceededError("request did not complete"), "PodRefused"},
      {"create pods digits-worker-0", absl::PermissionDeniedError("violates PodSecurity \"restricted\""), "PodRefused"},
      {"create pods digits-worker-0", absl::PermissionDeniedError("maximum memory usage per Pod is 1Gi"), "PodRefused"},
      {"create pods digits-worker-0", absl::InvalidArgumentError("spec.containers[0].name: Invalid"), "PodRefused"},
      {"create services digits", absl::InternalError("failed calling webhook \"s\""), "ServiceRefused"},
      {"apply configmaps gleaner-bootstrap", absl::InternalError("failed calling webhook \"c\""), "ConfigMapRefused"}};
  for (const RefusalCase& refusal : cases) {
    client_.errors = {{refusal.call, refusal.answer}};
    events_ = {};
    const Outcome outcome = carry_out(busy(job_));
    EXPECT_TRUE(outcome.failure.ok()) << outcome.failure;
    EXPECT_TRUE(outcome.requeue_after.has_value());
    for (const char* type : {"Created", "Running"}) {
      const api::Condition* condition = api::find_condition(outcome.status.conditions, type);
      ASSERT_NE(condition, nullptr);
      EXPECT_FALSE(condition->status);
      EXPECT_EQ(condition->reason, refusal.reason);
      EXPECT_THAT(condition->message, HasSubstr(std::string(refusal.answer.message())));
    }
    EXPECT_THAT(events_.reasons, ElementsAre("Running", refusal.reason));
    EXPECT_THAT(events_.messages.back(), HasSubstr(std::string(refusal.answer.message())));
    EXPECT_THAT(client_.calls, Contains("replace trainingjobs digits status"));
  }
}

TEST_F(Execution, PausesGrowWithRefusals) {
  client_.errors["create pods digits-worker-1"] = absl::InternalError("failed calling webhook");
  const auto expect_pause = [this](int seconds) {
    const absl::Duration pause = *carry_out(busy(job_)).requeue_after;
    EXPECT_GE(pause, absl::Seconds(seconds) * 0.75);
    EXPECT_LE(pause, absl::Seconds(seconds) * 1.25);
    EXPECT_EQ(backoff_.pause(job_, kWorkers), pause);
    clock_.advance(pause);
    EXPECT_EQ(backoff_.pause(job_, kWorkers), absl::ZeroDuration());
  };
  for (const int seconds : {1, 2, 4, 8, 16, 32, 60, 60}) expect_pause(seconds);
  client_.errors.clear();
  EXPECT_FALSE(carry_out(busy(job_)).refused) << "the webhook is back";
  client_.errors["create pods digits-worker-1"] = absl::InternalError("failed calling webhook");
  expect_pause(1);  // the next refusal is a first one
  carry_out(busy(job_));
  job_.status.attempt = 1;
  EXPECT_EQ(backoff_.pause(job_, kWorkers), absl::ZeroDuration()) << "a new attempt does not wait";
}

TEST_F(Execution, RefusedPlanIsEventAndFailure) {
  Proposal proposal = quiet(job_);
  proposal.draft.plan.emplace().meta.name = "digits";
  proposal.draft.session.emplace().job = "team/digits/0";
  client_.errors["apply reductionplans digits"] = absl::InternalError("failed calling webhook");
  EXPECT_TRUE(absl::IsInternal(carry_out(proposal).failure));
  EXPECT_THAT(events_.reasons, ElementsAre("Running", "ReductionPlanRefused"));
  EXPECT_THAT(service_.calls, Contains("add team/digits/0")) << "a session that may run already";
  service_.calls.clear();
  proposal.draft.plan_begins = true;
  carry_out(proposal);
  EXPECT_THAT(service_.calls, IsEmpty()) << "the plan has to record with which summers a session begins";
}

TEST_F(Execution, OutageIsNoRefusal) {
  client_.errors["create pods digits-worker-0"] = absl::UnavailableError("connection refused");
  const Outcome outcome = carry_out(busy(job_));
  EXPECT_FALSE(outcome.refused);
  EXPECT_TRUE(absl::IsUnavailable(outcome.failure));
}

TEST_F(Execution, RefusedSummersAreToldOnceAndPause) {
  Proposal proposal = quiet(job_);
  proposal.draft.create_summers.pods = {pod("digits-summer-0"), pod("digits-summer-1")};
  proposal.draft.create_summers.note = {false, "SummerAdded", "two", "Beginning"};
  const std::vector<absl::Status> answers = {absl::PermissionDeniedError("minimum cpu usage per Container is 10m"),
                                             absl::ResourceExhaustedError("exceeded quota: team"),
                                             absl::PermissionDeniedError("no PriorityClass with name low was found")};
  absl::Duration last;
  for (const absl::Status& answer : answers) {
    client_.calls.clear();
    client_.errors = {{"create pods digits-summer-0", answer}, {"create pods digits-summer-1", answer}};
    const Outcome outcome = carry_out(proposal);
    EXPECT_TRUE(outcome.failure.ok());
    EXPECT_TRUE(outcome.requeue_after.has_value()) << "a decision has to write the condition";
    EXPECT_THAT(client_.calls, Contains("create pods digits-summer-1")) << "another summer may be admitted";
    const auto refused = backoff_.summers_refused(job_);
    ASSERT_TRUE(refused.has_value());
    EXPECT_THAT(refused->why, HasSubstr(std::string(answer.message())));
    EXPECT_GT(refused->pause, last) << "pauses grow";
    last = refused->pause;
  }
  EXPECT_THAT(events_.reasons, ElementsAre("Running", "SummerRefused", "Running", "Running"));
  client_.errors.clear();
  events_ = {};
  carry_out(proposal);
  EXPECT_THAT(events_.reasons, ElementsAre("Running", "SummerAdded"));
  EXPECT_FALSE(backoff_.summers_refused(job_).has_value());
}

TEST_F(Execution, FirstStatusMayWait) {
  job_.status.start_time.reset();
  carry_out(busy(job_));
  EXPECT_THAT(client_.calls, Not(Contains("replace trainingjobs digits status")));
  client_.errors["create pods digits-worker-0"] = absl::AlreadyExistsError("it is there");
  client_.objects["get pods digits-worker-0"] = owned_by("Pod", "digits-worker-0", "TrainingJob", "job-uid");
  EXPECT_EQ(carry_out(busy(job_)).requeue_after, absl::Seconds(5));
  EXPECT_THAT(client_.calls, Contains("replace trainingjobs digits status")) << "the status has changed";
}

// A decision that has a step of each kind, except one that confirms that pods are gone.
Proposal everything(const api::TrainingJob& job) {
  Proposal proposal = busy(job);
  proposal.draft.create_summers.pods = {pod("digits-summer-0")};
  proposal.draft.release = {{"digits-worker-0", {}}};
  proposal.draft.plan.emplace().meta.name = "digits";
  proposal.draft.tell.ended = {{coordinator::Role::kWorker, 1, absl::OkStatus()}};
  proposal.draft.end_session = "a new attempt begins";
  proposal.draft.remove_job = true;
  return proposal;
}

// A write that fails, and the calls that are left out because of it.
struct FailureCase {
  const char* call;
  std::vector<std::string> left_out;
};

TEST_F(Execution, FailedStepStopsOnlyStepsThatNeedIt) {
  const std::string workers[] = {"create pods digits-worker-0", "create pods digits-worker-1"};
  const std::string summer = "create pods digits-summer-0";
  const std::vector<FailureCase> cases = {{"apply configmaps gleaner-bootstrap", {workers[0], workers[1], summer}},
                                          {"create services digits", {workers[0], workers[1]}},
                                          {"create pods digits-worker-0", {workers[1]}},
                                          {"create pods digits-worker-1", {}},
                                          {"create pods digits-summer-0", {}},
                                          {"patch pods digits-worker-0", {}},
                                          {"apply reductionplans digits", {}},
                                          {"remove pods old", {}},
                                          {"remove trainingjobs digits", {}},
                                          {"add team/digits/0", {"ended 1"}}};
  const auto calls = [this](const char* failing, const absl::Status& answer) {
    // A new operator: none of its memories keeps a call away.
    IdentityStore identities(env_, client_, "gleaner-system", {}, std::filesystem::temp_directory_path(),
                             [](const std::string&) { return std::nullopt; });
    CoordinatedSessions sessions(env_, service_);
    CreationBackoff backoff(env_);
    const DecisionExecutor executor({env_, client_, identities, sessions, reports_, backoff, events_, metrics_});
    client_.errors = service_.errors = {{failing, answer}};
    client_.calls.clear();
    service_.calls.clear();
    events_ = {};
    reconcile::Observation observation;
    observation.job = job_;
    executor.carry_out(observation, everything(job_).decision());
    std::set<std::string> done(client_.calls.begin(), client_.calls.end());
    done.insert(service_.calls.begin(), service_.calls.end());
    if (std::count(events_.reasons.begin(), events_.reasons.end(), "Running") > 0) done.insert("event Running");
    return done;
  };
  const std::set<std::string> all = calls("", absl::OkStatus());
  for (const FailureCase& failure : cases) {
    ASSERT_TRUE(all.contains(failure.call)) << failure.call;
    for (const absl::Status& answer : {absl::UnavailableError("connection refused"), absl::InternalError("webhook")}) {
      std::set<std::string> expected = all;
      for (const std::string& call : failure.left_out) expected.erase(call);
      EXPECT_EQ(calls(failure.call, answer), expected) << failure.call << ": " << answer;
    }
  }
}

TEST_F(Execution, UrgentEventNeedsNoStatus) {
  client_.errors["replace trainingjobs digits status"] = absl::InvalidArgumentError("too long");
  for (const uint32_t attempt : {0U, 1U}) {  // a new attempt is written before everything else
    Proposal proposal = quiet(job_);
    proposal.update.status.attempt = attempt;
    proposal.update.add_urgent_event("ReconcileFailing", "it can't write the status");
    events_ = {};
    EXPECT_THAT(carry_out(proposal).failure.message(), HasSubstr("can't write the status: too long"));
    EXPECT_THAT(events_.reasons, ElementsAre("ReconcileFailing")) << attempt;
  }
}

TEST_F(Execution, NamesOwnerOfForeignObject) {
  const struct {
    const char *create, *get;
    absl::Status answer;
    json object;
    const char *reason, *words;
  } cases[] = {{"create pods digits-worker-1", "get pods digits-worker-1", absl::AlreadyExistsError("exists"),
                owned_by("Pod", "digits-worker-1", "ReplicaSet", "web"), "PodNameTaken",
                "Pod team/digits-worker-1, which belongs to ReplicaSet owner: delete it"},
               {"create pods digits-worker-0", "get pods digits-worker-0", absl::AlreadyExistsError("exists"),
                owned_by("Pod", "digits-worker-0", "", ""), "PodNameTaken", "which has no owner: delete it"},
               {"create pods digits-worker-0", "get pods digits-worker-0", absl::AlreadyExistsError("exists"),
                leaving(owned_by("Pod", "digits-worker-0", "TrainingJob", "earlier")), "PodNameTaken",
                "is being deleted: wait until it is gone"},
               {"create services digits", "get services digits", absl::AlreadyExistsError("exists"),
                owned_by("Service", "digits", "", ""), "ServiceNameTaken", "Service team/digits, which has no owner"}};
  for (const auto& [create, get, answer, object, reason, words] : cases) {
    job_.status = digits().status;
    client_.errors = {{create, answer}};
    client_.objects = {{get, object}};
    events_ = {};
    const Outcome outcome = carry_out(busy(job_));
    EXPECT_TRUE(outcome.failure.ok()) << outcome.failure;
    EXPECT_TRUE(outcome.requeue_after.has_value());
    const api::Condition* created = api::find_condition(outcome.status.conditions, "Created");
    ASSERT_NE(created, nullptr);
    EXPECT_FALSE(created->status);
    EXPECT_EQ(created->reason, reason);
    EXPECT_THAT(created->message, HasSubstr(words));
    EXPECT_THAT(events_.reasons, Contains(reason));
    job_.status = outcome.status;
    events_ = {};
    carry_out(busy(job_));
    EXPECT_THAT(events_.reasons, Not(Contains(reason))) << "one Event";
  }
}

// Returns a proposal with the ranks of a new attempt.
Proposal with_ranks(const api::TrainingJob& job) {
  Proposal proposal(job);
  proposal.update.status.communication.rank_map.emplace();
  proposal.draft.rank_map = json{{"metadata", {{"name", "digits-ranks"}}}};
  proposal.draft.rank_labels = {{"digits-worker-0", 1}, {"digits-worker-1", 0}};
  return proposal;
}

TEST_F(Execution, RanksFollowTheirStatus) {
  client_.errors["create configmaps digits-ranks"] = absl::AlreadyExistsError("it exists");
  EXPECT_TRUE(carry_out(with_ranks(job_)).failure.ok()) << "an earlier decision has created it";
  EXPECT_THAT(client_.calls, ElementsAre("replace trainingjobs digits status", "create configmaps digits-ranks",
                                         "patch pods digits-worker-0", "patch pods digits-worker-1"));
  client_.calls.clear();
  client_.errors["replace trainingjobs digits status"] = absl::AbortedError("conflict");
  EXPECT_FALSE(carry_out(with_ranks(job_)).failure.ok());
  EXPECT_THAT(client_.calls, ElementsAre("replace trainingjobs digits status"));
}

TEST_F(Execution, RefusedRanksLabelNoPod) {
  client_.errors["create configmaps digits-ranks"] = absl::PermissionDeniedError("configmaps is forbidden");
  const Outcome outcome = carry_out(with_ranks(job_));
  EXPECT_THAT(outcome.failure.message(), HasSubstr("can't write the ConfigMap with the ranks"));
  EXPECT_THAT(client_.calls, Not(Contains("patch pods digits-worker-0")));
}

TEST_F(Execution, OpenSessionIsNotOpenedAgain) {
  const Proposal proposal = busy(job_);
  carry_out(proposal);
  carry_out(proposal);
  EXPECT_EQ(std::ranges::count(service_.calls, "add team/digits/0"), 1);
}

TEST_F(Execution, TakesBackOwnService) {
  client_.errors = {{"create services digits", absl::AlreadyExistsError("exists")}};
  client_.objects = {{"get services digits", owned_by("Service", "digits", "TrainingJob", "job-uid")}};
  carry_out(busy(job_));
  EXPECT_EQ(std::count(client_.calls.begin(), client_.calls.end(), "apply services digits"), 1);
}

TEST_F(Execution, NamesOwnerOfForeignSummer) {
  Proposal proposal = quiet(job_);
  proposal.draft.create_summers.pods = {pod("digits-summer-0")};
  client_.errors["create pods digits-summer-0"] = absl::AlreadyExistsError("exists");
  client_.objects["get pods digits-summer-0"] = owned_by("Pod", "digits-summer-0", "ReplicaSet", "web");
  EXPECT_TRUE(carry_out(proposal).failure.ok());
  EXPECT_THAT(events_.reasons, Contains("SummerRefused"));
  EXPECT_THAT(events_.messages.back(), HasSubstr("belongs to ReplicaSet owner"));
}

class Sessions : public Execution {};

TEST_F(Sessions, GetEachFactOnce) {
  Proposal proposal = quiet(job_);
  proposal.draft.session.emplace().job = "team/digits/0";
  proposal.draft.tell.ended = {{coordinator::Role::kWorker, 2, absl::OkStatus()}};
  proposal.draft.tell.release = {{1, {false, "SummerRemoved", "summer-1 removed", "BuysNothing"}}};
  proposal.draft.tell.bandwidths = {{coordinator::Role::kWorker, 0, 1e9}};
  service_.errors["release 1"] = absl::NotFoundError("it has not joined");
  carry_out(proposal);
  EXPECT_THAT(service_.calls, ElementsAre("add team/digits/0", "ended 2", "release 1", "bandwidth 0"));
  EXPECT_THAT(events_.reasons, ElementsAre("Running")) << "the Event about the summer waits until it is released";
  service_.calls.clear();
  service_.errors.clear();
  carry_out(proposal);
  EXPECT_THAT(service_.calls, ElementsAre("release 1"));
  EXPECT_THAT(events_.reasons, ElementsAre("Running", "Running", "SummerRemoved"));
  clock_.advance(absl::Seconds(10));
  service_.calls.clear();
  carry_out(proposal);
  EXPECT_THAT(service_.calls, ElementsAre("bandwidth 0"));
}

TEST_F(Sessions, GetTheSwitchOfEachSummerOnce) {
  Proposal proposal = quiet(job_);
  proposal.draft.session.emplace().job = "team/digits/0";
  proposal.draft.tell.summer_groups = {{3, {"zone/rack-1", "zone"}}, {4, {"zone/rack-7", "zone"}}};
  carry_out(proposal);
  EXPECT_THAT(service_.calls, ElementsAre("add team/digits/0")) << "the session has no network";
  sessions_.end(job_.meta.key(), "another one begins");
  const topology::Topology racks = *topology::racks(2, 2, {});
  std::vector<topology::Switch> switches = racks.switches();
  switches[2].name = "zone/rack-1";
  proposal.draft.session->reduction.network = std::make_shared<const strategy::JobNetwork>(
      strategy::JobNetwork{.topology = *topology::Topology::make(racks.hosts(), switches, racks.links())});
  service_.errors["summer 4 at switch 0"] = absl::NotFoundError("no such job");
  for (int i = 0; i < 2; ++i) {
    service_.calls.clear();
    carry_out(proposal);
  }
  EXPECT_THAT(service_.calls, ElementsAre("summer 4 at switch 0")) << "it is told again until the service knows it";
}

TEST_F(Sessions, EarlierAttemptIsOutdated) {
  Proposal proposal = quiet(job_);
  proposal.draft.session.emplace().job = "team/digits/0";
  EXPECT_FALSE(sessions_.is_outdated(job_)) << "the service has no session of this job";
  EXPECT_FALSE(sessions_.observe(job_).state.has_value());
  carry_out(proposal);
  service_.job.emplace();
  EXPECT_FALSE(sessions_.is_outdated(job_));
  EXPECT_TRUE(sessions_.observe(job_).state.has_value());
  service_.job->outcome = absl::OkStatus();
  EXPECT_EQ(sessions_.observe(job_).ended_for, absl::ZeroDuration());
  clock_.advance(absl::Seconds(3));
  EXPECT_EQ(sessions_.observe(job_).ended_for, absl::Seconds(3));
  job_.status.attempt = 1;
  EXPECT_TRUE(sessions_.is_outdated(job_));
  sessions_.end(job_.meta.key(), "a new attempt begins");
  EXPECT_THAT(service_.calls, Contains("remove team/digits/0: a new attempt begins"));
  EXPECT_FALSE(sessions_.is_outdated(job_));
}

class Reports : public Execution {};

TEST_F(Reports, FiguresAreWrittenEveryTenSeconds) {
  api::TrainingJobStatus status = job_.status;
  const auto write = [&](const char* goodput) {
    status.communication.goodput = goodput;
    client_.calls.clear();
    EXPECT_TRUE(reports_.write_status(job_, status).ok());
    return client_.calls.size();
  };
  EXPECT_EQ(write("1 MB/s"), 1U);
  EXPECT_EQ(write("2 MB/s"), 0U);
  clock_.advance(absl::Seconds(10));
  EXPECT_EQ(write("3 MB/s"), 1U);
  status.workers_ready = 2;
  EXPECT_EQ(write("4 MB/s"), 1U) << "another field than a figure has changed";
  status.workers_ready = job_.status.workers_ready;
  EXPECT_EQ(write("5 MB/s"), 0U);
  reports_.forget(job_.meta.key());
  EXPECT_EQ(write("6 MB/s"), 1U);
  EXPECT_EQ(write(""), 0U) << "the status is unchanged";
}

}  // namespace
}  // namespace gleaner::operation
