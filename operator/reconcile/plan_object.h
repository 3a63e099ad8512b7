// The ReductionPlan of an attempt: who takes part, and what its coordinator says of it.
#pragma once

#include "operator/reconcile/decide.h"

namespace gleaner::reconcile {

// `members`: the workers, then the summers that count. Without a session, or before its first plan with tensors, shares
// are 0.
types::ReductionPlan make_plan_object(const Observed& observed, const std::vector<const PodView*>& members);

}  // namespace gleaner::reconcile
