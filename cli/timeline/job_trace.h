// JobTrace has the recordings of all members of a job, each with the times of its own clock. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/plan/plan.h"
#include "common/trace/event.h"

namespace gleaner::cli {

// The recording of one rank or CPU summer.
struct RankTrace {
  uint32_t member = 0;
  uint32_t local_rank = 0;  // 0 for a CPU summer
  std::string missing;      // why there is no recording; empty: there is one
  trace::Recording recording;
};

struct JobTrace {
  plan::Plan plan;
  std::vector<RankTrace> ranks;  // in order of member, then local rank; CPU summers come last
};

// Return "worker 0" or "summer 1"; rank_name() returns "worker 0.1" if there are several local ranks.
std::string member_name(const plan::Plan& plan, uint32_t member);
std::string rank_name(const plan::Plan& plan, const RankTrace& rank);

}  // namespace gleaner::cli
