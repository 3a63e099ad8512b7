// What the simulated members of one job share.
#pragma once

#include <algorithm>

#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "tests/sim/dice.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/expected_sums.h"
#include "tests/sim/network.h"
#include "tests/sim/report.h"
#include "tests/sim/scenario.h"

namespace gleaner::sim {

inline constexpr uint64_t kJob = 0x6a6f62;

struct World {
  World(const Scenario& what, Report* to, Network::Deliver deliver)
      : scenario(what),
        dice(what.seed ^ 0x5eed),
        report(to),
        network(what, &events, &dice, to, &pool, std::move(deliver)),
        expected(&what) {}

  absl::Duration time() const { return absl::Nanoseconds(events.now()); }
  uint64_t largest_partition() const {
    uint64_t largest = 0;
    for (const plan::Partition& partition : scenario.last_plan().partitions) {
      largest = std::max<uint64_t>(largest, partition.bytes);
    }
    return largest;
  }

  const Scenario& scenario;
  Dice dice;
  Report* const report;
  BufferPool pool;  // before what holds its buffers
  EventQueue events;
  Network network;
  ExpectedSums expected;
};

}  // namespace gleaner::sim
