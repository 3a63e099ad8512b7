// What the members of a job recorded, as it came from them: each by its own clock. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/plan/plan.h"
#include "common/trace/event.h"

namespace gleaner::cli {

struct RankTrace {
  uint32_t member = 0;
  uint32_t local_rank = 0;  // of a worker
  std::string missing;      // why nothing came from it; empty: something did
  trace::Recording recording;
};

struct JobTrace {
  plan::Plan plan;
  std::vector<RankTrace> ranks;  // in order of member, then local rank; CPU summers come last
};

// "worker 0", "worker 0.1" with several local ranks, "summer 1".
std::string member_name(const plan::Plan& plan, uint32_t member);
std::string rank_name(const plan::Plan& plan, const RankTrace& rank);

}  // namespace gleaner::cli
