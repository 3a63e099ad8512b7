// The steps of a job in its trace. Pure.
//
// Members know how often each tensor was pushed, not what the program calls a step. A step begins where the program
// asks for the tensor before which it most often has nothing under way (after which forward and backward passes have
// gone); where something always is, for the one that the plan has first. Which calls belong to it is read off the
// worker that asked most, and holds for all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/timeline/timeline.h"

namespace gleaner::cli {

struct Step {
  uint64_t number = 0;  // the highest step of its tensors
  std::vector<Call> calls;
  Time requested = kNever;  // the first request of any rank
  Time begin = kNever;      // the end of the step before it in the trace, or else the first request
  Time end = kNever;        // the last request is done
  std::string incomplete;   // why it can't be looked into; empty: it can
};

// In order of time. The calls before the first begin of a step in the trace belong to none.
std::vector<Step> find_steps(const Timeline& timeline);

}  // namespace gleaner::cli
