// Departures lets ranks and workers leave the job, and keeps when the job began to end.
//
// A rank *leaves cleanly* when it sends Leave with an OK status under the plan in force. With the first rank that
// leaves cleanly, or the first worker that has ended cleanly, the job is *ending*: no further sum can be made. Every
// member then gets Ending, and later ranks learn which other workers have left. A member that leaves gets Goodbye, and
// its seat is Seat::State::kLeft. Pure; belongs to a Core.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/plan/plan.h"
#include "coordinator/failures/outcome.h"
#include "coordinator/measure/efficiency_meter.h"
#include "coordinator/roster/findings.h"
#include "coordinator/roster/messages.h"
#include "coordinator/roster/options.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

class Departures {
 public:
  // The pointers must outlive this object.
  Departures(const Options* options, Roster* roster, const Outcome* outcome, const EfficiencyMeter* efficiency)
      : local_ranks_(options->local_ranks), roster_(*roster), outcome_(*outcome), efficiency_(*efficiency) {}

  bool is_ending() const { return first_leave_at_.has_value(); }
  // Returns when the first rank left, or the first worker ended, cleanly.
  std::optional<absl::Duration> first_leave_at() const { return first_leave_at_; }
  bool have_all_ranks_left() const { return roster_.left_ranks() == roster_.ranks(); }

  // Returns whether a rank that asks to leave must stay: it follows the plan of `epoch`, and may be needed under the
  // later plan `in_force`. The rank sends Leave again when it follows that plan.
  bool must_stay(uint32_t epoch, const plan::Plan& in_force) const;
  // Lets a rank leave cleanly.
  void leave(uint32_t rank, absl::Duration now, Actions& actions);
  // Lets a rank leave with an error, or before the job has begun (`status` is OK). Returns why the job fails.
  Failure leave_in_error(uint32_t rank, const absl::Status& status, absl::Duration now, Actions& actions);
  // Returns whether all local ranks of the worker whose first rank is `first` have left.
  bool has_worker_left(uint32_t first) const;
  // Lets a worker, whose first rank is `first`, go: all its processes have ended cleanly.
  void end_worker(uint32_t first, absl::Duration now, Actions& actions);
  // Tells ranks which workers have left since the last tick.
  void on_tick(Actions& actions);

 private:
  void begin_ending(absl::Duration now, Actions& actions);
  void note_departure(uint32_t rank);

  const uint32_t local_ranks_;
  Roster& roster_;
  const Outcome& outcome_;
  const EfficiencyMeter& efficiency_;
  std::optional<absl::Duration> first_leave_at_;
  std::vector<uint32_t> untold_;  // workers that have left, of which the other ranks were not told
};

}  // namespace gleaner::coordinator
