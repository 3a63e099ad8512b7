// Tests of the decisions that replace others after the API server has refused an object.
#include "operator/reconcile/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "operator/reconcile/draft.h"
#include "tests/unit/reconcile/world.h"

namespace gleaner::reconcile {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const absl::Status kQuota = absl::ResourceExhaustedError("exceeded quota: team");

// Returns a refusal of a pod, after which the operator waits for four seconds.
Refusal refusal_of(const World& world, const absl::Status& why) { return {"Pod", why, world.now, absl::Seconds(4)}; }

// Returns the place of the step that makes the worker pods.
size_t creation(const Decision& decision) {
  const std::vector<Step>& steps = decision.steps();
  const auto found = std::find_if(steps.begin(), steps.end(),
                                  [](const Step& step) { return std::holds_alternative<CreateWorkers>(step.action); });
  return static_cast<size_t>(found - steps.begin());
}

// Returns the decision after the API server has refused the worker pods of `decided`.
Decision refused(const Observation& observation, const Decision& decided, const Refusal& refusal) {
  return refused_start(observation, decided, creation(decided), refusal);
}

// Returns the steps that `rest` has of type T.
template <typename T>
std::vector<T> steps_of_type(const Decision& rest) {
  std::vector<T> found;
  for (const Step& step : rest.steps()) {
    if (const auto* action = std::get_if<T>(&step.action)) found.push_back(*action);
  }
  return found;
}

TEST(RefusedStart, ShowsQuotaInStatusAndEvent) {
  World world(2);
  const Observation observation = world.observe();
  const Decision decided = decide(observation, {});
  const Decision rest = refused(observation, decided, refusal_of(world, kQuota));
  ASSERT_NE(rest.status(), nullptr);
  const auto& conditions = rest.status()->conditions;
  const api::Condition* created = api::find_condition(conditions, "Created");
  ASSERT_NE(created, nullptr);
  EXPECT_FALSE(created->status);
  EXPECT_EQ(created->reason, "QuotaExceeded");
  EXPECT_THAT(created->message, HasSubstr("exceeded quota: team"));
  EXPECT_EQ(api::find_condition(conditions, "Running")->message, created->message);
  EXPECT_EQ(rest.status()->phase, "Pending");
  EXPECT_EQ(rest.status()->start_time, decided.status()->start_time) << "other fields are as decided";
  const auto records = steps_of_type<RecordEvents>(rest);
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].events.at(0).reason, "QuotaExceeded");
}

TEST(RefusedStart, IsRecordedOnce) {
  for (const absl::Status& why : {kQuota, absl::InvalidArgumentError(std::string(100000, 'x'))}) {
    World world(2);
    const Observation first = world.observe();
    const Decision first_try = refused(first, decide(first, {}), refusal_of(world, why));
    world.job.status = *first_try.status();
    const auto read = api::parse_training_job(api::to_json(world.job));
    ASSERT_TRUE(read.ok()) << read.status();
    world.job.status = read->status;
    const Observation second = world.observe();
    const Decision again = refused(second, decide(second, {}), refusal_of(world, why));
    EXPECT_THAT(steps_of_type<RecordEvents>(again), IsEmpty());
    const Decision other = refused(second, decide(second, {}), refusal_of(world, absl::InternalError("webhook")));
    EXPECT_THAT(steps_of_type<RecordEvents>(other), SizeIs(1)) << "another refusal is another Event";
  }
}

TEST(RefusedStart, StatusNoLongerWaits) {
  World world(2);
  const Observation observation = world.observe();
  const Decision decided = decide(observation, {});
  EXPECT_TRUE(steps_of_type<WriteStatus>(decided).at(0).optional);
  const Decision rest = refused(observation, decided, refusal_of(world, kQuota));
  EXPECT_FALSE(steps_of_type<WriteStatus>(rest).at(0).optional) << "no watch of new pods causes another decision";
}

TEST(RefusedStart, RequeuesAtEarlierTime) {
  World world(2);
  const Observation observation = world.observe();
  const Refusal refusal = refusal_of(world, kQuota);
  const std::vector<Step> steps = decide(observation, {}).steps();
  EXPECT_EQ(refused(observation, {steps, std::nullopt}, refusal).requeue_after(), absl::Seconds(4));
  EXPECT_EQ(refused(observation, {steps, absl::Seconds(3)}, refusal).requeue_after(), absl::Seconds(3));
  EXPECT_EQ(refused(observation, {steps, absl::Seconds(9)}, refusal).requeue_after(), absl::Seconds(4));
}

TEST(RefusedStart, WritesNoSecondStatus) {
  World world(2);
  const Observation observation = world.observe();
  Draft draft;
  draft.create = {nlohmann::json::object()};
  StatusUpdate update(world.job, world.now);
  update.status.attempt = 1;
  const Decision decided = finish(world.job, draft, update);
  const Decision rest = refused(observation, decided, refusal_of(world, kQuota));
  EXPECT_EQ(*rest.status(), *decided.status()) << "it was written before the pods, so the job's version has changed";
}

}  // namespace
}  // namespace gleaner::reconcile
