// Tests of a rank's requests: their start, their step numbers and their ends.
#include "comm-lib/runtime/request_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

DeclaredRequest request(uint64_t handle, const std::string& tensor,
                        absl::Duration requested_at = absl::ZeroDuration()) {
  DeclaredRequest state;
  state.request.handle = handle;
  state.request.requested_at = requested_at;
  state.declaration = 7;
  state.tensor = {tensor, 1, DataType::kFloat32};
  return state;
}

plan::Plan plan_of(const std::vector<std::string>& tensors) {
  plan::Plan plan;
  for (const std::string& name : tensors) plan.tensors.push_back({name, 1, DataType::kFloat32});
  return plan;
}

auto has_handle(uint64_t handle) { return Field(&Request::handle, handle); }

std::vector<Outcome> outcomes_of(RequestTable& table) {
  std::vector<Outcome> outcomes;
  table.take_outcomes(outcomes);
  return outcomes;
}

TEST(RequestTable, ARequestOfAPlannedTensorStartsAtOnceAndCountsSteps) {
  RequestTable table;
  EXPECT_THAT(table.on_plan(plan_of({"a", "b"})), IsEmpty());
  for (uint64_t step = 0; step < 3; ++step) {
    const std::optional<Request> started = table.add(request(10 + step, "b"));
    ASSERT_TRUE(started.has_value());
    EXPECT_EQ(started->handle, 10 + step);
    EXPECT_EQ(started->tensor, 1u);
    EXPECT_EQ(started->step, step);
    EXPECT_FALSE(table.empty());
    EXPECT_EQ(table.started("b"), step + 1);
    const std::optional<DeclaredRequest> ended = table.end(10 + step, absl::OkStatus());
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->request.step, step);
    EXPECT_EQ(ended->declaration, 7u);
    EXPECT_TRUE(table.empty());
  }
  EXPECT_EQ(table.started("a"), 0u);
}

TEST(RequestTable, ARequestWithoutAPlanWaitsForAPlanWithItsTensor) {
  RequestTable table;
  EXPECT_FALSE(table.add(request(1, "a")).has_value());
  EXPECT_FALSE(table.add(request(2, "b")).has_value());
  EXPECT_FALSE(table.add(request(3, "c")).has_value());
  EXPECT_EQ(table.started("a"), 0u);
  EXPECT_THAT(table.on_plan(plan_of({"b"})), ElementsAre(has_handle(2)));
  EXPECT_THAT(table.on_plan(plan_of({"b"})), IsEmpty()) << "the plan has no new tensor";
  const std::vector<Request> started = table.on_plan(plan_of({"b", "c", "a"}));
  ASSERT_THAT(started, ElementsAre(has_handle(1), has_handle(3))) << "in the order of the calls";
  EXPECT_EQ(started[0].tensor, 2u);
  EXPECT_EQ(started[1].tensor, 1u);
}

TEST(RequestTable, AnOutcomeIsTakenOnce) {
  RequestTable table;
  table.on_plan(plan_of({"a"}));
  table.add(request(1, "a"));
  EXPECT_THAT(outcomes_of(table), IsEmpty());
  table.end(1, absl::UnavailableError("lost"));
  EXPECT_FALSE(table.end(1, absl::OkStatus()).has_value()) << "ended before";
  table.refuse(2, absl::AbortedError("the session has failed"));
  const std::vector<Outcome> outcomes = outcomes_of(table);
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes[0].handle, 1u);
  EXPECT_TRUE(absl::IsUnavailable(outcomes[0].status));
  EXPECT_EQ(outcomes[1].handle, 2u);
  EXPECT_TRUE(absl::IsAborted(outcomes[1].status));
  EXPECT_THAT(outcomes_of(table), IsEmpty());
}

TEST(RequestTable, AFailureEndsStartedAndWaitingRequests) {
  RequestTable table;
  table.on_plan(plan_of({"a"}));
  table.add(request(1, "a"));
  table.add(request(2, "b"));
  EXPECT_EQ(table.end_all(absl::UnavailableError("lost")).size(), 2u);
  EXPECT_TRUE(table.empty());
  EXPECT_THAT(outcomes_of(table), UnorderedElementsAre(Field(&Outcome::handle, 1u), Field(&Outcome::handle, 2u)));
  EXPECT_THAT(table.on_plan(plan_of({"a", "b"})), IsEmpty()) << "no request waits any more";
}

TEST(RequestTable, TheOldestRequestIsOverdueAfterHalfASecond) {
  RequestTable table;
  const absl::Duration start = absl::Hours(1);
  EXPECT_FALSE(table.overdue(start).has_value());
  table.on_plan(plan_of({"a", "b"}));
  table.add(request(1, "a", start));
  table.end(1, absl::OkStatus());
  table.add(request(2, "a", start));
  table.add(request(3, "b", start + absl::Milliseconds(1)));
  EXPECT_FALSE(table.overdue(start + absl::Milliseconds(499)).has_value());
  const std::optional<control::Waiting> overdue = table.overdue(start + absl::Seconds(2));
  ASSERT_TRUE(overdue.has_value());
  EXPECT_EQ(overdue->tensor, "a");
  EXPECT_EQ(overdue->step, 1u);
  EXPECT_EQ(overdue->elapsed, absl::Seconds(2));
}

}  // namespace
}  // namespace gleaner::runtime
