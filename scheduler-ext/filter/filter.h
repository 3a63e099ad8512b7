// Decides on which of kube-scheduler's nodes a pod of Gleaner may run. Pure.
#pragma once

#include <vector>

#include "common/placement/fleet.h"
#include "common/placement/placement.h"
#include "scheduler-ext/state/state.h"

namespace gleaner::extender {

// Returns, for each node of the snapshot, the refusal of the pod; an empty one if the pod can run there. Workers may
// run on every node. So may summers while no NodeProfile exists: then kube-scheduler alone decides, and the pod is not
// delayed.
std::vector<placement::Refusal> filter(const placement::Pod& pod, const Snapshot& snapshot);

}  // namespace gleaner::extender
