// The names of strategies, and the class of bits that each strategy has, for people and programs. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/plan/plan.h"

namespace gleaner::plan {

// The name of the strategy in which the owners of partitions sum them.
inline constexpr const char* kSummersStrategy = "summers";
// The name of the schedule after which each worker adds all contributions by itself, in rank order.
inline constexpr const char* kGatherAlgorithm = "gather";

// Returns the class of the bits of sums by this strategy, whose algorithm may be kSummersStrategy. Summers and gather
// have kRankOrder, all other algorithms kSchedule.
Bits bits_of(const ScheduleParameters& strategy);

// Returns "RankOrder" or "Schedule".
const char* name_of(Bits bits);

// Returns the class of this name, in letters of any case. None: there is no such class.
std::optional<Bits> parse_bits(absl::string_view name);

// Returns the algorithm, and its stages or the sizes of its groups if there are any: "ring", "blueconnect 3,2,2",
// "racks 3+5".
std::string name_of(const ScheduleParameters& schedule);

// Compares the time of a step in a class of bits with that in the class in force, for people. Examples:
//   describe_other_bits("Schedule", 0.0012, 0.0019, "ring")
//       "class Schedule would take 1.2 ms a step instead of 1.9 ms (ring)"
//   describe_other_bits("RankOrder", 0.0012, 0.0012, "summers")
//       "class RankOrder would take as long (summers)"
// `bits` is the other class, `seconds` its time, and `strategies` would then sum the tensors; `instead_of_seconds` is
// the time in the class in force.
std::string describe_other_bits(absl::string_view bits, double seconds, double instead_of_seconds,
                                absl::string_view strategies);

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
