// Tests of the order of a decision's steps.
#include "operator/reconcile/draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gleaner::reconcile {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

api::TrainingJob digits() {
  api::TrainingJob job;
  job.meta.ns = "team";
  job.meta.name = "digits";
  job.workers.replicas = 2;
  job.status.start_time = absl::UnixEpoch();
  return job;
}

StatusUpdate update_at_epoch(const api::TrainingJob& job) { return {job, absl::UnixEpoch()}; }

Draft busy() {
  Draft draft;
  draft.create = {json::object(), json::object()};
  draft.session.emplace().job = "team/digits/0";
  draft.remove = {{"old", "uid"}};
  return draft;
}

template <typename T>
size_t count(const Decision& decision) {
  const std::vector<Step>& steps = decision.steps();
  return static_cast<size_t>(std::count_if(steps.begin(), steps.end(),
                                           [](const Step& step) { return std::holds_alternative<T>(step.action); }));
}

// Returns the places of the steps' actions in the variant.
std::vector<size_t> kinds(const Decision& decision) {
  std::vector<size_t> found;
  for (const Step& step : decision.steps()) found.push_back(step.action.index());
  return found;
}

template <typename T>
size_t kind() {
  return Action(T()).index();
}

// Returns whether all steps after the one at this place need it.
bool all_others_need(const Decision& decision, size_t place) {
  const std::vector<Step>& steps = decision.steps();
  return std::all_of(steps.begin() + static_cast<ptrdiff_t>(place) + 1, steps.end(), [place](const Step& step) {
    return std::find(step.needs.begin(), step.needs.end(), place) != step.needs.end();
  });
}

TEST(Steps, NewAttemptIsWrittenFirst) {
  const api::TrainingJob job = digits();
  StatusUpdate update = update_at_epoch(job);
  update.status.attempt = 1;
  Draft draft = busy();
  draft.confirm_missing = {"digits-worker-1"};
  const Decision decision = finish(job, draft, update);
  EXPECT_TRUE(std::holds_alternative<ConfirmMissing>(decision.steps()[0].action));
  EXPECT_TRUE(std::holds_alternative<WriteStatus>(decision.steps()[1].action));
  EXPECT_TRUE(all_others_need(decision, 0));
  EXPECT_TRUE(all_others_need(decision, 1));
  EXPECT_EQ(count<WriteStatus>(decision), 1U);
}

TEST(Steps, SuspensionIsWrittenBeforePodsAreRemoved) {
  const api::TrainingJob job = digits();
  StatusUpdate update = update_at_epoch(job);
  update.set_condition("Suspended", true, "Suspended", "");
  Draft draft;
  draft.remove = {{"digits-worker-0", "uid"}};
  const Decision decision = finish(job, draft, update);
  EXPECT_TRUE(std::holds_alternative<WriteStatus>(decision.steps()[0].action));
  EXPECT_TRUE(all_others_need(decision, 0)) << "pods that are told to end may end with 0, as if they had succeeded";
}

TEST(Steps, SuccessOfWorkerIsWrittenFirst) {
  const api::TrainingJob job = digits();
  StatusUpdate update = update_at_epoch(job);
  update.status.succeeded_indexes = {1};
  Draft draft;
  draft.session.emplace().job = "team/digits/0";
  const Decision decision = finish(job, draft, update);
  EXPECT_TRUE(std::holds_alternative<WriteStatus>(decision.steps()[0].action));
  EXPECT_TRUE(all_others_need(decision, 0));
  EXPECT_EQ(count<WriteStatus>(decision), 1U);
}

TEST(Steps, BootstrapIsEnsuredOnce) {
  const api::TrainingJob job = digits();
  Draft draft = busy();
  draft.create_summers.pods = {json::object()};
  EXPECT_EQ(count<EnsureBootstrap>(finish(job, draft, update_at_epoch(job))), 1U);
  EXPECT_EQ(count<EnsureBootstrap>(finish(job, {}, update_at_epoch(job))), 0U);
  draft.create.clear();
  EXPECT_EQ(count<EnsureBootstrap>(finish(job, draft, update_at_epoch(job))), 1U);
  draft.create_summers.pods.clear();
  EXPECT_EQ(count<EnsureBootstrap>(finish(job, draft, update_at_epoch(job))), 1U);
}

TEST(Steps, StandInFixedOrder) {
  const api::TrainingJob job = digits();
  Draft draft = busy();
  draft.release = {{"digits-worker-0", {}}};
  draft.plan.emplace();
  draft.end_session = "a new attempt begins";
  draft.remove_job = true;
  StatusUpdate update = update_at_epoch(job);
  update.add_event(false, "Running", "all 2 workers run");
  const Decision decision = finish(job, draft, update);
  EXPECT_THAT(kinds(decision),
              ElementsAre(kind<EndSession>(), kind<EnsureBootstrap>(), kind<CreateService>(), kind<CreateWorkers>(),
                          kind<ReleaseWorkers>(), kind<WritePlan>(), kind<OpenSession>(), kind<TellSession>(),
                          kind<RemovePods>(), kind<WriteStatus>(), kind<RecordEvents>(), kind<RemoveJob>()));
}

TEST(Steps, OneWorkerNeedsNoService) {
  api::TrainingJob job = digits();
  job.workers.replicas = 1;
  EXPECT_EQ(count<CreateService>(finish(job, busy(), update_at_epoch(job))), 0U);
}

TEST(Steps, PhaseFollowsFromConditions) {
  const api::TrainingJob job = digits();
  StatusUpdate update = update_at_epoch(job);
  update.set_condition("Running", true, "WorkersRunning", "");
  update.requeue_after(absl::Seconds(7));
  const Decision decision = finish(job, {}, update);
  ASSERT_NE(decision.status(), nullptr);
  EXPECT_EQ(decision.status()->phase, "Running");
  EXPECT_EQ(decision.requeue_after(), absl::Seconds(7));
}

}  // namespace
}  // namespace gleaner::reconcile
