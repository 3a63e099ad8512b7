// differing_operations(): the error of common/base/differing_operations.h about two workers of a plan. Pure.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/base/bytes.h"
#include "common/plan/plan.h"

namespace gleaner::plan {

struct WorkersOperation {
  uint32_t worker = 0;
  ReduceOp op = ReduceOp::kSum;
};

// `step` counts the earlier push_pulls that the same strategy has summed, as the step of a frame does. The error names
// it only while that is the count of all earlier push_pulls: until a plan changes the tensor's strategy. The lower
// worker comes first.
absl::Status differing_operations(const Plan& plan, uint32_t tensor, uint64_t step, const WorkersOperation& one,
                                  const WorkersOperation& other);

}  // namespace gleaner::plan
