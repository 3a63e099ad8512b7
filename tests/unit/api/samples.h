// Makes objects in which the value of every field differs from its default and from those of all other fields.
#pragma once

#include "common/api/node_profile.h"
#include "common/api/reduction_plan.h"
#include "common/api/topology.h"
#include "common/api/training_job.h"

namespace gleaner::api {

TrainingJob filled_job();
NodeProfile filled_profile();
Topology filled_topology();
ReductionPlan filled_plan();

}  // namespace gleaner::api
