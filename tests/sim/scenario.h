// One random job, drawn from a seed: who takes part, what is summed, and what befalls them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/plan/plan.h"
#include "tests/sim/event_queue.h"

namespace gleaner::sim {

// What may happen to frames between two members.
struct Weather {
  Nanoseconds least_delay = 0, most_delay = 0;
  double late_chance = 0;  // of a frame that takes up to late_delay
  Nanoseconds late_delay = 0;
  double duplicate_chance = 0;
  double survive_chance = 0;  // of a frame to a summer to arrive after its connection is gone
  bool ordered = true;        // within a connection and direction
};

struct Scenario {
  uint64_t seed = 0;
  // Each adds tensors to the one before; the first is there from the start.
  std::vector<std::shared_ptr<const plan::Plan>> plans;
  std::vector<Nanoseconds> plan_times;
  std::vector<uint32_t> joins_at;  // per tensor of the last plan: the round in which the program first uses it
  std::vector<ReduceOp> ops;       // per tensor; may alternate with the step, see op_of()
  uint32_t steps = 1;              // per tensor
  bool barrier = false;            // a worker begins a round when all of the last is done; else tensors run freely
  std::vector<Nanoseconds> paces;  // per worker: most time between two starts
  uint64_t window_bytes = 1;
  Nanoseconds stall_after = 0, defer_retry = 0, tick = 0;
  uint64_t memory_cap_bytes = 0;
  Weather weather;
  uint32_t disconnects = 0;
  Nanoseconds fault_time = 0;  // disconnects happen before this
  double in_place_chance = 0;

  const plan::Plan& last_plan() const { return *plans.back(); }
  ReduceOp op_of(uint32_t tensor, uint64_t step) const;
  std::string to_string() const;
};

Scenario draw_scenario(uint64_t seed);

}  // namespace gleaner::sim
