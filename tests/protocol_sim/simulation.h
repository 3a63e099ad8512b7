// Simulation: runs one scenario from start to end, with members, coordinator and faults, and makes the final checks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/kernels/kernels.h"
#include "tests/protocol_sim/control.h"
#include "tests/protocol_sim/scenario.h"
#include "tests/protocol_sim/step_reports.h"
#include "tests/protocol_sim/summer.h"
#include "tests/protocol_sim/worker.h"
#include "tests/protocol_sim/world.h"

namespace gleaner::sim {

// Why a connection ended: its peer was silent, or broke it.
absl::Status silent();
absl::Status broken();

class Simulation {
 public:
  Simulation(const Scenario& scenario, const kernels::Kernels* kernels, Report* report);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Runs until every worker has all sums and has left, or until the report has a failure.
  void run();

 private:
  void add_summer(double bits_per_second);
  void begin_fault(Fault fault);
  void happen(Fault fault);
  // Losses of members and of the coordinator (losses.cc).
  bool has_begun() const;
  bool is_gathering() const;
  bool has_joined(const CpuSummer& summer) const;
  bool may_happen(Fault fault);
  bool may_die();
  bool has_all_summers(const plan::Plan& plan);
  bool is_any_held() const;
  void happen_in_hold(Fault fault, Nanoseconds within);
  bool may_hang_in_change() const;
  void allow_to_end_in_hold();
  void lose_coordinator();
  void die_after_commit(uint32_t epoch, Nanoseconds within);
  void die();
  void replace_coordinator();
  void usurp_coordinator();
  void lose_summer(bool at_once);
  void on_left_alone(uint32_t process);
  void lose_worker();
  void give_up_on_frozen_worker();
  absl::Duration timeout_without_coordinator() const;
  void allow_to_begin_late(bool may_lose);
  void allow_to_fail_without(const CpuSummer& summer);
  void allow_to_fail_without_stream(uint32_t worker);
  void tell_of_ended_workers();
  void tell_of_end(coordinator::Role role, uint32_t index);
  // The other faults, and the run (simulation.cc).
  void note(Fault fault, const CpuSummer* summer);
  void disconnect();
  void cut();
  void cut_from(uint32_t worker, uint32_t process, bool for_good);
  void flap();
  void lose_a_report();
  void thaw();
  void pause_somebody();
  void change_bandwidth();
  void report_slow_summers();
  void break_a_stream();
  void tick(uint32_t worker);
  CpuSummer* pick_summer();
  CpuSummer* summer_of(uint32_t process);
  uint32_t process_of(const CpuSummer* summer) const;
  std::optional<std::pair<uint32_t, uint32_t>> pick_connection();
  bool is_reachable(uint32_t worker, uint32_t process);
  void all_lose(uint32_t process, Nanoseconds least, Nanoseconds most, const absl::Status& why);
  // Runs `what` after `delay`. The simulation does not count as over before that.
  void later(Nanoseconds delay, std::function<void()> what);
  std::string who_waits() const;
  void check_end();

  World world_;
  Control control_;
  const kernels::Kernels* const kernels_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<CpuSummer>> summers_;  // the process number is the index + the number of workers
  std::vector<bool> told_ended_;                     // by worker: the present coordinator was told of its end
  uint32_t incarnations_ = 1;
  uint64_t reported_seconds_ = 0, reported_steps_ = 0;  // in the reports of report_slow_summers()
  StepReports step_reports_;
};

}  // namespace gleaner::sim
