// Functions that build an attempt's ReductionPlan: its members, and the coordinator's figures for them. A new leader
// reads from this object which members take part.
#pragma once

#include <vector>

#include "operator/reconcile/observation.h"

namespace gleaner::reconcile {

// A summer as a member of the plan or of the session.
struct SummerSeat {
  uint32_t index = 0;
  const PodView* pod = nullptr;  // null: the pod does not exist, or is not in the cache yet
  bool had_pod = false;          // the summer's pod has existed
};

// Returns whether the ReductionPlan records the summers with which this attempt begins.
bool is_settled(const Observation& observation);

// Returns the push ratio (plan::Fleet) by the ReductionPlan of this or an earlier attempt. Before the job's first plan
// with tensors it returns 1, since the types of tensors are unknown: with several local ranks, 16-bit tensors then
// have 2.
double planned_push_ratio(const Observation& observation);

std::vector<SummerSeat> seats_of(const std::vector<const PodView*>& summers);
std::vector<SummerSeat> planned_summers(const Observation& observation);  // the summers of the ReductionPlan
std::vector<SummerSeat> session_summers(
    const Observation& observation);  // the summers of the session, which must exist
std::vector<const PodView*> pods_of(const std::vector<SummerSeat>& summers);  // null where there is no pod

// Returns the ReductionPlan. `workers`: by index. Without a session, or before its first plan with tensors, owned and
// traffic bytes are 0.
api::ReductionPlan make_plan_object(const Observation& observation, const std::vector<const PodView*>& workers,
                                    const std::vector<SummerSeat>& summers);

}  // namespace gleaner::reconcile
