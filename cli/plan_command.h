// gleaner plan: prints the plan that a job would get, computed from numbers.
#pragma once

#include "absl/status/status.h"
#include "cli/plan_flags.h"

namespace gleaner::cli {

absl::Status run_plan(const PlanFlags& flags);

}  // namespace gleaner::cli
