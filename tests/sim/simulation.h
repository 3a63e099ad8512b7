// Runs one scenario from start to end: members, plan changes, faults, and the checks when all is over.
#pragma once

#include <memory>
#include <vector>

#include "common/kernels/kernels.h"
#include "tests/sim/scenario.h"
#include "tests/sim/summer.h"
#include "tests/sim/worker.h"
#include "tests/sim/world.h"

namespace gleaner::sim {

class Simulation {
 public:
  Simulation(const Scenario& scenario, const kernels::Kernels* kernels, Report* report);

  // Ends when every worker has all sums and nothing is under way, or with a failure in the report.
  void run();

 private:
  void prepare_plan(size_t index);
  void commit_plan(size_t index);
  void connect(uint32_t worker, uint32_t owner);
  void disconnect_somebody();
  void tick(uint32_t worker);
  bool finished() const;
  std::string who_waits() const;
  void check_end();
  Nanoseconds soon() { return world_.dice.between(0, 3 * kMillisecond); }

  World world_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Summer>> summers_;  // by member
  uint32_t pending_ = 0;                          // plan changes and faults that have not happened yet
  bool over_ = false;
};

}  // namespace gleaner::sim
