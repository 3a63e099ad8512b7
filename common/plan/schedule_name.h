// name_of() names the strategy that a schedule is, for people and programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/plan/plan.h"

namespace gleaner::plan {

// The name of the strategy in which the owners of partitions sum them.
inline constexpr const char* kSummersStrategy = "summers";
// The name of the schedule after which each worker adds all contributions by itself, in rank order.
inline constexpr const char* kGatherAlgorithm = "gather";

// Returns the algorithm and its stages, if any are given: "ring", "blueconnect 3,2,2", or "racks 3+5"
// with the sizes of its groups.
std::string name_of(const ScheduleParameters& schedule);

// The tensors that one strategy sums.
struct StrategyShare {
  std::string strategy;  // kSummersStrategy, or name_of() a schedule
  uint64_t tensors = 0;
  uint64_t bytes = 0;  // of these tensors together
  friend bool operator==(const StrategyShare&, const StrategyShare&) = default;
};

// Returns the shares of the strategies that sum the tensors of a plan which do not accumulate, in the order of their
// first tensors.
std::vector<StrategyShare> strategy_shares(const Plan& plan);

// Returns the names of the strategies that sum the tensors of a plan which do not accumulate, in the order of their
// first tensors: "summers, halving-doubling". A plan without tensors has the one that its first tensors will have.
std::string strategy_of(const Plan& plan);

}  // namespace gleaner::plan
