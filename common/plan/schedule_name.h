// name_of() names the strategy that a schedule is, for people and programs.
#pragma once

#include <string>

#include "common/plan/plan.h"

namespace gleaner::plan {

// The name of the strategy in which the owners of partitions sum them.
inline constexpr const char* kSummersStrategy = "summers";

// Returns the algorithm and its stages, if any are given: "ring", "blueconnect 3,2,2", or "racks 3+5"
// with the sizes of its groups.
std::string name_of(const ScheduleParameters& schedule);

// Returns the names of the strategies that sum the tensors of a plan which do not accumulate, in the order of their
// first tensors: "summers, halving-doubling". A plan without tensors has the one that its first tensors will have.
std::string strategy_of(const Plan& plan);

}  // namespace gleaner::plan
