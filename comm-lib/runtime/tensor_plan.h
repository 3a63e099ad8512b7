// tensor_plan() describes how a plan sums a tensor, as gln_get_tensor_plan() tells programs.
#pragma once

#include <cstdint>
#include <string>

#include "common/plan/plan.h"

namespace gleaner::runtime {

// Returns the JSON object that gleaner.h documents. `tensor` is an index in the plan.
std::string tensor_plan(const plan::Plan& plan, uint32_t tensor);

}  // namespace gleaner::runtime
