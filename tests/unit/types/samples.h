// Objects in which every field has a value that is neither its default nor that of another field.
#pragma once

#include "operator/types/node_profile.h"
#include "operator/types/reduction_plan.h"
#include "operator/types/training_job.h"

namespace gleaner::types {

TrainingJob filled_job();
NodeProfile filled_profile();
ReductionPlan filled_plan();

}  // namespace gleaner::types
