#include "common/plan/differing_operations.h"

#include <gtest/gtest.h>

namespace gleaner::plan {
namespace {

Plan plan_of(Tensor tensor) {
  Plan plan;
  plan.workers = 3;
  plan.tensors = {{"v", 10}, std::move(tensor)};
  return plan;
}

TEST(DifferingOperations, TheLowerWorkerComesFirst) {
  const Plan plan = plan_of({"w", 10});
  const WorkersOperation one{0, ReduceOp::kAverage}, other{2, ReduceOp::kSum};
  const absl::Status status = differing_operations(plan, 1, 3, one, other);
  EXPECT_EQ(status, absl::InvalidArgumentError("tensor 'w': in its 4th push_pull worker 0 asks for its "
                                               "average, worker 2 for its sum; every rank must ask for the same "
                                               "operation"));
  EXPECT_EQ(differing_operations(plan, 1, 3, other, one), status);
}

// The step of a frame counts only the push_pulls by one strategy.
TEST(DifferingOperations, NoNumberOnceTheStrategyHasChanged) {
  Tensor changed{"w", 10};
  changed.schedule = 0;
  changed.schedule_from = 100;
  const absl::Status status =
      differing_operations(plan_of(changed), 1, 3, {0, ReduceOp::kAverage}, {1, ReduceOp::kSum});
  EXPECT_EQ(status.message(),
            "tensor 'w': worker 0 asks for its average, worker 1 for its sum; every rank must ask for the same "
            "operation");
}

}  // namespace
}  // namespace gleaner::plan
