// The ReductionPlan of an attempt: who takes part, and what its coordinator says of it. It is also the record of who
// takes part, for the operator that comes after this one.
#pragma once

#include <vector>

#include "operator/reconcile/decide.h"

namespace gleaner::reconcile {

struct Seated {
  uint32_t index = 0;
  const PodView* pod = nullptr;  // null: there is none, or not yet in the cache
  bool had_pod = false;          // it was seen
};

// True once the summers that this attempt begins with are on record.
bool is_settled(const Observed& observed);

std::vector<Seated> seated(const std::vector<const PodView*>& summers);
std::vector<Seated> planned_summers(const Observed& observed);  // by the ReductionPlan
std::vector<Seated> seated_summers(const Observed& observed);   // by the coordinator's session
std::vector<const PodView*> pods_of(const std::vector<Seated>& summers);

// Without a session, or before its first plan with tensors, shares are 0.
types::ReductionPlan make_plan_object(const Observed& observed, const std::vector<const PodView*>& workers,
                                      const std::vector<Seated>& summers);

}  // namespace gleaner::reconcile
