// Decides on which of kube-scheduler's nodes a pod of Gleaner may run. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/placement/fleet.h"
#include "scheduler-ext/state/state.h"

namespace gleaner::extender {

// Returns, for each node of the snapshot, the reason for which the pod can't run on it; empty if it can. Workers may
// run on every node. So may summers while no NodeProfile exists: then kube-scheduler alone decides, and the pod is not
// delayed.
std::vector<std::string> filter(const placement::Pod& pod, const Snapshot& snapshot);

}  // namespace gleaner::extender
