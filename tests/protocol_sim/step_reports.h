// StepReports: reports of all workers with made-up times of steps, after which a coordinator with --strategy auto may
// change the strategies of tensors. The sums of the simulation take no part in these times.
#pragma once

#include <cstdint>

#include "tests/protocol_sim/control.h"
#include "tests/protocol_sim/world.h"

namespace gleaner::sim {

class StepReports {
 public:
  // Sends the coordinator the reports of the next seconds at once. By all of them a step takes much longer than any
  // model says, or much less time.
  void send(World& world, Control& control);

 private:
  uint64_t steps_ = 0;
  double seconds_ = 0;
};

}  // namespace gleaner::sim
