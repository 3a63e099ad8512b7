// Finds the steps of a job in its trace. Pure.
//
// Members know how often each tensor was pushed, but not which push_pulls the program regards as one step. find_steps()
// takes the worker with the most requests. For each tensor it adds up the pauses, before the tensor's requests, in
// which that worker has had no request in flight, and takes the tensor with the longest pauses: these are forward and
// backward passes. A request of that tensor begins a step. If there is never a pause, the tensor with the most requests
// begins a step (of several, the first of the plan). All requests of that worker up to the next such request belong to
// the step, and so do the same steps of these tensors for all other ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/timeline/timeline.h"

namespace gleaner::cli {

struct Step {
  uint64_t number = 0;  // the highest step number of its tensors
  std::vector<TensorStep> tensor_steps;
  Time requested = kNever;  // of the first request of any rank
  Time begin = kNever;      // the latest end of the steps before it in the trace; of the first step: `requested`
  Time end = kNever;        // when the last request of any rank was done
  std::string incomplete;   // the reason for which events of the step are missing; empty: the step is complete
};

// Returns the steps in order of time. Requests before the first one that begins a step belong to no step.
std::vector<Step> find_steps(const Timeline& timeline);

}  // namespace gleaner::cli
