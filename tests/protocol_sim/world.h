// World: the state that all simulated members of one job share.
#pragma once

#include <functional>

#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "tests/protocol_sim/accumulated_sums.h"
#include "tests/protocol_sim/causes.h"
#include "tests/protocol_sim/dice.h"
#include "tests/protocol_sim/event_queue.h"
#include "tests/protocol_sim/expected_sums.h"
#include "tests/protocol_sim/network.h"
#include "tests/protocol_sim/report.h"
#include "tests/protocol_sim/scenario.h"

namespace gleaner::sim {

inline constexpr uint64_t kJob = 0x6a6f62;

struct World {
  World(const Scenario& what, Report* to, Network::Deliver deliver)
      : scenario(what),
        dice(what.seed ^ 0x5eed),
        report(to),
        network(what, &events, &dice, to, &pool, std::move(deliver),
                [this](uint32_t worker, uint32_t process) { close(worker, process); }),
        expected(&what),
        accumulated(&what, to) {}

  absl::Duration time() const { return absl::Nanoseconds(events.now()); }
  const Scenario& scenario;
  Dice dice;
  Report* const report;
  BufferPool pool;  // must outlive the members below, which hold its buffers
  EventQueue events;
  Network network;
  ExpectedSums expected;
  AccumulatedSums accumulated;
  Causes causes;
  // Called when a CPU summer's process ends though no coordinator is left that could make a plan without it.
  std::function<void(uint32_t process)> on_left_alone;
  uint32_t pending = 0;  // number of faults that have not happened yet or are not over
  bool over = false;
  bool coordinator_is_gone = false;  // lost for good
  // Returns whether a worker can connect to a process at the moment.
  std::function<bool(uint32_t worker, uint32_t process)> reachable;
  // Tells a process that a worker's connection to it is up.
  std::function<void(uint32_t worker, uint32_t process)> connected;
  // Closes the connection between a worker and a process.
  std::function<void(uint32_t worker, uint32_t process)> close;
};

}  // namespace gleaner::sim
