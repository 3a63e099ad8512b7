// StepReports: reports of all workers with made-up times of steps and rates of links, after which a coordinator with
// --strategy auto may change the strategies of tensors, and one with two-level their masters. The sums of the
// simulation take no part in these figures.
#pragma once

#include <cstdint>

#include "tests/protocol_sim/control.h"
#include "tests/protocol_sim/world.h"

namespace gleaner::sim {

class StepReports {
 public:
  // Sends the coordinator the reports of the next seconds at once. By all of them a step takes much longer than any
  // model says, or much less time. With two-level each step takes half as long as by the last call, so that a change
  // seems to have helped, and the link of a worker falls from 5 to 2 Gbit/s, or recovers.
  void send(World& world, Control& control);

 private:
  double draw_seconds(World& world, bool is_two_level);

  uint64_t steps_ = 0;
  double step_seconds_ = 1e3;  // with two-level
  bool is_slow_ = false;       // the link of the first worker
  double seconds_ = 0;
};

}  // namespace gleaner::sim
