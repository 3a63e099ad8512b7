// StepMonitor observes the steps of a job by the reports of its ranks.
//
// Its parts are EfficiencyMeter (how long steps take, compared with the bounds of the plans), StepTimes (how long they
// take under the plan in force, without the waiting for slow workers), SlowSummers (keeps summers that make steps
// longer without a share) and DeadlockDetector (ranks that wait for a sum which can't be made). Functions that return a
// Failure return the reason for which the job fails, if it does. Pure; belongs to a Core.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "absl/time/time.h"
#include "common/plan/plan.h"
#include "coordinator/failures/deadlocks.h"
#include "coordinator/measure/efficiency_meter.h"
#include "coordinator/measure/slow_summers.h"
#include "coordinator/measure/step_times.h"
#include "coordinator/planning/declarations.h"
#include "coordinator/roster/findings.h"
#include "coordinator/roster/messages.h"
#include "coordinator/roster/options.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

class StepMonitor {
 public:
  // The pointers must outlive this object.
  StepMonitor(const Options* options, Roster* roster, const Declarations* declarations)
      : local_ranks_(options->local_ranks),
        efficiency_(roster->ranks(), options->reduction.network.get()),
        deadlocks_(options, roster, declarations, &efficiency_),
        slow_summers_(roster),
        step_times_(roster->ranks(), options->local_ranks) {}

  const EfficiencyMeter& efficiency() const { return efficiency_; }
  const SlowSummers& slow_summers() const { return slow_summers_; }
  const DeadlockDetector& deadlocks() const { return deadlocks_; }
  DeadlockDetector& deadlocks() { return deadlocks_; }

  // Records that `plan` comes into force, or is taken up from another coordinator. `summers_at`: see EfficiencyMeter.
  void on_plan(const plan::Plan& plan, std::span<const uint32_t> summers_at, absl::Duration now);
  // See StepTimes.
  std::optional<StepTime> take_step_time(absl::Duration now) { return step_times_.take(now); }
  // Returns whether every worker has measured the overhead of a message.
  bool have_measured() const;
  // Takes a report of a rank. `judges_summers`: all ranks take part in steps under the plan in force, so the report can
  // show which summers are slow.
  void on_report(uint32_t rank, const Report& report, bool judges_summers, absl::Duration now, Actions& actions);
  // Checks for ranks that wait for each other or, once a rank has left, for a rank that has left. `first_leave_at`:
  // when the first rank left cleanly; none: no rank has left.
  std::optional<Failure> check_waiting_ranks(std::optional<absl::Duration> first_leave_at, absl::Duration now,
                                             Actions& actions);
  // Tries slow summers again whose backoff is over. To be called while `judges_summers` holds.
  void retry_slow_summers(absl::Duration now, Actions& actions) { slow_summers_.on_tick(now, actions); }

 private:
  const uint32_t local_ranks_;
  EfficiencyMeter efficiency_;
  DeadlockDetector deadlocks_;
  SlowSummers slow_summers_;
  StepTimes step_times_;
};

}  // namespace gleaner::coordinator
