// Makes the part of the output of `gleaner explain` and `gleaner status` about a job's rank map: which worker has which
// ranks, and why. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "common/api/rank_map.h"
#include "common/api/reduction_plan.h"

namespace gleaner::cli {

// Returns the reason for the ranks: "follow the 2 groups of the workers' machines, so that ...", or "are the workers'
// indexes, since no label tells ...".
std::string ranks_reason(const api::RankMap& map);

// Returns the ranks of a member: "3", "8-15" with several local ranks, or "-" for a summer.
std::string ranks_of(const api::PlanMember& member, uint32_t local_ranks);

// Returns InvalidArgument if the groups have workers that the plan does not have.
absl::Status check_ranks(const api::ReductionPlanSpec& spec);

// Return the lines Ranks and Network, and the same as JSON. The plan of an older operator has no rank map: "" and null.
// Require check_ranks().
std::string ranks_text(const api::ReductionPlanSpec& spec, uint32_t local_ranks);
nlohmann::json ranks_json(const api::ReductionPlanSpec& spec);

}  // namespace gleaner::cli
