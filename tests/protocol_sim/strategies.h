// Draws the strategy that sums the tensors of a scenario.
#pragma once

#include <cstdint>

#include "common/collective/spec.h"
#include "common/strategy/strategy.h"
#include "coordinator/roster/options.h"
#include "tests/protocol_sim/dice.h"

namespace gleaner::sim {

// Returns one of the algorithms that serve `workers` workers, with drawn parameters and a drawn rank map.
collective::Spec draw_schedule(uint32_t workers, Dice& dice);

// Returns summers for most scenarios, else Auto, which gives the tensors of one job different strategies, or a
// schedule.
strategy::Strategy draw_strategy(uint32_t workers, Dice& dice);

// Returns whether the coordinator of this job changes the masters of two-level while it runs.
bool tunes_masters(const coordinator::Options& job);

}  // namespace gleaner::sim
