// Draws the strategy that sums the tensors of a scenario.
#pragma once

#include <cstdint>
#include <optional>

#include "common/plan/plan.h"
#include "tests/protocol_sim/dice.h"

namespace gleaner::sim {

// Returns one of the algorithms that serve `workers` workers, with drawn parameters and a drawn rank map.
plan::ScheduleParameters draw_schedule(uint32_t workers, Dice& dice);

// Returns a value of coordinator::Options::schedule: none (summers) for most scenarios, else strategy::kAuto, which
// gives the tensors of one job different strategies, or the parameters of a schedule.
std::optional<plan::ScheduleParameters> draw_strategy(uint32_t workers, Dice& dice);

}  // namespace gleaner::sim
