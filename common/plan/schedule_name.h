// The names of strategies, and the class of bits that each strategy has, for people and programs. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/collective/spec.h"
#include "common/plan/plan.h"

namespace gleaner::plan {

// The name of the strategy in which the owners of partitions sum them.
inline constexpr const char* kSummersStrategy = "summers";
// The name of the schedule after which each worker adds all contributions by itself, in rank order.
inline constexpr const char* kGatherAlgorithm = "gather";

// Returns the class of the bits of sums by this schedule: that of gather is kRankOrder, as that of summers, and all
// others have kSchedule.
Bits bits_of(const collective::Spec& schedule);

// Returns the class of the bits, and the name, of a strategy: a schedule, or none for summers.
inline Bits bits_of(const std::optional<collective::Spec>& schedule) {
  return schedule.has_value() ? bits_of(*schedule) : Bits::kRankOrder;
}
inline std::string name_of(const std::optional<collective::Spec>& schedule) {
  return schedule.has_value() ? collective::name_of(*schedule) : kSummersStrategy;
}

// Returns "RankOrder" or "Schedule".
const char* name_of(Bits bits);

// Returns the class of this name, in letters of any case. None: there is no such class.
std::optional<Bits> parse_bits(absl::string_view name);

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
  std::string strategy;  // kSummersStrategy, or the name of a schedule
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
