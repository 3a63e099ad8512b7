// Tests of plans, their schedules and the window.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/status_codes.h"
#include "tests/unit/executor/worker_group.h"

namespace gleaner::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(ExecutorPlans, ScheduleDoesNotServeTheWorkers) {
  WorkerGroup group({.workers = 3});
  executor::Executor executor({.job = kJob}, &group.pool, &group.kernels);
  const auto apply = [&](const ScheduledPlan& spec) {
    return executor.apply(build_plan(spec), group.now, group.actions);
  };
  const absl::Status status =
      apply({.workers = 3, .epoch = 4, .schedules = {{.algorithm = "ring"}, {.algorithm = "bcube", .radix = 2}}});
  EXPECT_EQ(status.code(), kInvalid);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("the plan of epoch 4 has schedule 1 (bcube)"), HasSubstr("3 workers can't execute"),
                    HasSubstr("power of the radix")));
  EXPECT_EQ(apply({.workers = 3, .schedules = {{.algorithm = "star"}}}).code(), kInvalid);
  EXPECT_TRUE(apply({.workers = 3}).ok());
}

TEST(ExecutorPlans, EqualSchedulesShareAProgram) {
  executor::Schedules schedules;
  ScheduledPlan spec{.workers = 3, .schedules = {{.algorithm = "ring"}, {.algorithm = "bcube"}, {.algorithm = "ring"}}};
  ASSERT_TRUE(schedules.apply(*build_plan(spec), 1).ok());
  EXPECT_EQ(&schedules[0], &schedules[2]);
  EXPECT_NE(&schedules[0], &schedules[1]);
  const executor::Program* const bcube = &schedules[1];
  spec.schedules.push_back({.algorithm = "bcube"});
  ASSERT_TRUE(schedules.apply(*build_plan(spec), 1).ok());
  EXPECT_EQ(&schedules[3], bcube);
}

TEST(ExecutorPlans, WithdrawnPlanLeavesNoSchedule) {
  executor::Schedules schedules;
  ASSERT_TRUE(
      schedules.prepare(*build_plan({.workers = 4, .epoch = 3, .schedules = {{.algorithm = "bcube"}}}), 1).ok());
  const auto later = build_plan({.workers = 4, .epoch = 4, .schedules = {{.algorithm = "ring"}}});
  ASSERT_TRUE(schedules.prepare(*later, 1).ok());
  ASSERT_TRUE(schedules.apply(*later, 1).ok());
  EXPECT_EQ(schedules[0].operations()[0].peer, 2u) << "the next rank of the ring";
  EXPECT_EQ(schedules[0].source_of(2), executor::Program::kNone);
}

TEST(ExecutorPlans, RankMap) {
  executor::Schedules schedules;
  const ScheduledPlan spec{.workers = 3, .schedules = {{.algorithm = "ring", .rank_of = {2, 0, 1}}}};
  ASSERT_TRUE(schedules.apply(*build_plan(spec), 0).ok());
  // Worker 0 has rank 2, which sends to rank 0, worker 1, and receives from rank 1, worker 2.
  EXPECT_EQ(schedules[0].operations()[0].peer, 1u);
  EXPECT_EQ(schedules[0].source_of(2), 0u);
  EXPECT_EQ(schedules[0].source_of(1), executor::Program::kNone);
}

TEST(ExecutorPlans, NotASuccessor) {
  WorkerGroup group({.workers = 2});
  EXPECT_FALSE(group[0].apply(build_plan({.workers = 2, .epoch = 1}), group.now, group.actions).ok());
}

// Worker 0 follows the plan of epoch 2, and begins a push_pull of a tensor that worker 1 does not know yet.
TEST(ExecutorPlans, SlicesOfALaterPlanWait) {
  ScheduledPlan spec{.workers = 2};
  WorkerGroup group(spec);
  spec.epoch = 2;
  spec.schedules.push_back({.algorithm = "halving-doubling"});
  spec.tensors.push_back({.elements = 6, .schedule = 1, .since = 2});
  group.plan = build_plan(spec);
  ASSERT_TRUE(group[0].apply(group.plan, group.now, group.actions).ok());
  group.fill(0, 1, 1);
  group.fill(1, 1, 2);
  ASSERT_TRUE(group.start(0, 1).ok());
  ASSERT_TRUE(group.start(0, 0).ok());
  ASSERT_TRUE(group.start(1, 0).ok());
  EXPECT_TRUE(group.deliver_all().ok()) << "other tensors go on";
  EXPECT_THAT(group.take_done(), SizeIs(2));
  ASSERT_TRUE(group[1].apply(group.plan, group.now, group.actions).ok());
  ASSERT_TRUE(group.start(1, 1).ok());
  EXPECT_TRUE(group.deliver_all().ok());
  EXPECT_THAT(group.take_done(), SizeIs(2));
  EXPECT_THAT(group.values(0, 1), Each(3.0f));
  EXPECT_THAT(group.values(1, 1), Each(3.0f));
}

TEST(ExecutorPlans, BadSliceOfALaterPlan) {
  ScheduledPlan spec{.workers = 2};
  WorkerGroup group(spec);
  ASSERT_TRUE(group.start(0).ok());
  exchange::Send frame = group.take_next(1);
  frame.header.tensor = 1;
  frame.header.epoch = 2;
  EXPECT_TRUE(group.deliver(1, frame).ok());
  spec.epoch = 2;
  ASSERT_TRUE(group[1].apply(build_plan(spec), group.now, group.actions).ok());
  EXPECT_THAT(std::string(group.actions.refused.message()),
              AllOf(HasSubstr("worker/0 sent SLICE 0 of tensor 1"), HasSubstr("to worker/1"), HasSubstr("no such")));
}

// A job of two workers, whose tensor goes by schedule 0, then by schedule 1.
class ChangedStrategy : public ::testing::Test {
 protected:
  ChangedStrategy() : group_(spec_) {}

  void commit(uint32_t worker) {
    ScheduledPlan spec = spec_;
    spec.epoch = 2;
    spec.tensors[0].schedule = 1;
    spec.tensors[0].schedule_from = 1;
    ASSERT_EQ(group_[worker].apply(build_plan(spec), group_.now, group_.actions), absl::OkStatus());
  }
  void start(uint32_t worker, uint32_t schedule, float value) {
    group_.fill(worker, 0, value);
    ASSERT_EQ(group_.start_by(worker, schedule), absl::OkStatus());
  }

  const ScheduledPlan spec_{.workers = 2, .schedules = {{.algorithm = "ring"}, {.algorithm = "halving-doubling"}}};
  WorkerGroup group_;
};

TEST_F(ChangedStrategy, SlicesByAScheduleOfALaterPlanWait) {
  commit(0);
  start(0, 1, 1);
  EXPECT_EQ(group_.deliver_all(), absl::OkStatus());
  EXPECT_EQ(group_.start_by(1, 1).code(), kInvalid) << "no plan of worker 1 says so";
  commit(1);
  start(1, 1, 2);
  EXPECT_EQ(group_.deliver_all(), absl::OkStatus());
  EXPECT_THAT(group_.take_done(), SizeIs(2));
  EXPECT_THAT(group_.values(0), Each(3.0f));
  EXPECT_THAT(group_.values(1), Each(3.0f));
}

// Worker 0 has ended push_pull 0 and begins push_pull 1 by the other schedule, while worker 1 is still in push_pull 0.
TEST_F(ChangedStrategy, BothSchedulesRunAtTheSameTime) {
  commit(0);
  commit(1);
  start(0, 0, 1);
  start(1, 0, 10);
  ASSERT_TRUE(group_.deliver_next(0).ok());
  ASSERT_TRUE(group_.deliver_next(1).ok());
  ASSERT_TRUE(group_.deliver_next(0).ok());
  ASSERT_THAT(group_.values(0), Each(11.0f));
  start(0, 1, 100);
  EXPECT_EQ(group_[0].step(0, 0), 1u);
  ASSERT_EQ(group_.inbox(1).size(), 2u) << "the last slice of the ring, and the first of halving-doubling";
  // The steps are those of each schedule, so the slice of the other one may even come first.
  exchange::Send last = group_.take_next(1), first = group_.take_next(1);
  EXPECT_EQ(first.header.schedule, 1u);
  EXPECT_EQ(first.header.step, 0u);
  std::swap(last.header.sequence, first.header.sequence);
  ASSERT_EQ(group_.deliver(1, first), absl::OkStatus());
  ASSERT_EQ(group_.deliver(1, last), absl::OkStatus());
  EXPECT_THAT(group_.values(1), Each(11.0f));
  start(1, 1, 200);
  ASSERT_EQ(group_.deliver_all(), absl::OkStatus());
  EXPECT_THAT(group_.values(0), Each(300.0f));
  EXPECT_THAT(group_.values(1), Each(300.0f));
  EXPECT_TRUE(group_.idle());
}

TEST_F(ChangedStrategy, AScheduleThatComesBackContinuesItsSteps) {
  for (const uint32_t worker : {0, 1}) commit(worker);
  struct Turn {
    uint32_t schedule;
    uint64_t step;  // of the schedule
  };
  for (const Turn& turn : {Turn{0, 0}, Turn{1, 0}, Turn{1, 1}, Turn{0, 1}}) {
    for (const uint32_t worker : {0, 1}) start(worker, turn.schedule, static_cast<float>(worker + 1));
    EXPECT_EQ(group_.inbox(1).front().header.step, turn.step);
    ASSERT_EQ(group_.deliver_all(), absl::OkStatus());
    EXPECT_THAT(group_.values(1), Each(3.0f));
  }
  EXPECT_EQ(group_[0].step(0, 0), 4u) << "the push_pulls by any schedule";
}

TEST(ExecutorPlans, Window) {
  const auto plan = build_plan({.workers = 2, .tensors = {{.elements = 100}}});
  EXPECT_EQ(executor::window_bytes(*plan, 0, 77, absl::Seconds(1)), 77u);
  EXPECT_EQ(executor::window_bytes(*plan, 0, 0, absl::ZeroDuration()), 1'250'000u) << "10 ms of 1 Gbit/s";
  EXPECT_EQ(executor::window_bytes(*plan, 0, 0, absl::Milliseconds(10)), 2'500'000u);
  const auto large = build_plan({.workers = 2, .tensors = {{.elements = 1'000'000}}});
  EXPECT_EQ(executor::window_bytes(*large, 0, 0, absl::ZeroDuration()), 2 * (4'000'000 + wire::kHeaderBytes));
}

}  // namespace
}  // namespace gleaner::testing
