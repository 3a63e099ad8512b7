// Which of the scheduler's nodes a pod of ours may go to. Pure.
#pragma once

#include <string>
#include <vector>

#include "operator/placement/fleet.h"
#include "scheduler-ext/state/state.h"

namespace gleaner::extender {

// Per node asked for: why the pod can't go there, for people; empty: it may. Workers may go anywhere. So may summers
// while there is no profile at all: then it is better to let the scheduler decide alone than to hold the pod.
std::vector<std::string> filter(const placement::Pod& pod, const Picture& picture);

}  // namespace gleaner::extender
