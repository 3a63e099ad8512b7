// TensorGroups groups the tensors of a plan by size, types and strategy, for the model of a step
// (common/strategy/step.h). Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "common/plan/plan.h"
#include "common/strategy/step.h"

namespace gleaner::coordinator {

struct TensorGroups {
  std::vector<strategy::TensorGroup> groups;  // per_step is the number of tensors
  std::vector<size_t> of_tensor;              // by tensor: its group
};

// `candidates` must have the schedules of the plan.
TensorGroups group_tensors(const plan::Plan& plan, std::span<const strategy::Candidate> candidates);

// Sets per_step of all groups so that a step reduces this many bytes.
void scale_to(double bytes_per_step, std::vector<strategy::TensorGroup>& groups);

}  // namespace gleaner::coordinator
