// Strategy says how the tensors of a job are summed, as the job's user asks for it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/collective/spec.h"

namespace gleaner::strategy {

// The owners of partitions sum them.
struct Summers {
  friend bool operator==(const Summers&, const Summers&) = default;
};

// Each tensor is summed in the way that is fastest for its size (choice.h).
struct Auto {
  friend bool operator==(const Auto&, const Auto&) = default;
};

// A Spec: the workers sum all tensors by this schedule, except for tensors that accumulate.
using Strategy = std::variant<Summers, Auto, collective::Spec>;

// The name of Auto, as a value of --strategy. That of Summers is plan::kSummersStrategy.
inline constexpr const char* kAuto = "auto";

// Returns the names of all strategies, as values of --strategy: Summers, Auto and the algorithms of schedules.
std::vector<std::string> strategy_names();

// Returns the strategy of this name. `factors` and `radix` are parameters of schedules; empty and 0: not given.
// InvalidArgument: Summers and Auto have no such parameters. An unknown name is taken for that of an algorithm, which
// make_schedule() refuses.
absl::StatusOr<Strategy> make_strategy(absl::string_view name, std::vector<uint32_t> factors = {}, uint32_t radix = 0);

std::string name_of(const Strategy& strategy);

inline bool is_auto(const Strategy& strategy) { return std::holds_alternative<Auto>(strategy); }
// Returns the schedule by which the strategy sums all tensors; null: it names none.
inline const collective::Spec* schedule_of(const Strategy& strategy) {
  return std::get_if<collective::Spec>(&strategy);
}

}  // namespace gleaner::strategy
