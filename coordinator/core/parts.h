// Parts holds the parts of one Core. Each part has one duty, which its header says:
// - Roster (roster.h): the members and their seats. The other parts share it.
// - Admission (admission.h): which members the job admits, and to which seats.
// - Declarations (declarations.h): the tensors that ranks declare.
// - StepMonitor (step_monitor.h): how long steps take, summers that make them longer, ranks that wait for each other.
// - Planning (planning.h): the plan in force, the proposed plan, and the reasons for the next one.
// - Reattachment (reattachment.h): takes up a job that began under another coordinator.
// - Departures (departures.h): ranks and workers that leave.
// - Outcome (outcome.h): how the job ends, and which member is the cause.
// - Liveness (liveness.h), StartTimeout (start_timeout.h): time limits.
//
// A part reads other parts and changes only itself and the roster. Its functions return what it found, and Core and
// Lifecycle pass that on to the parts that it concerns. Pure; belongs to a Core.
#pragma once

#include <utility>

#include "absl/time/time.h"
#include "coordinator/core/admission.h"
#include "coordinator/core/departures.h"
#include "coordinator/core/reattachment.h"
#include "coordinator/core/step_monitor.h"
#include "coordinator/failures/liveness.h"
#include "coordinator/failures/outcome.h"
#include "coordinator/failures/start_timeout.h"
#include "coordinator/planning/declarations.h"
#include "coordinator/planning/planning.h"
#include "coordinator/roster/options.h"
#include "coordinator/roster/roster.h"
#include "coordinator/status/phase.h"

namespace gleaner::coordinator {

struct Parts {
  Parts(const Options& job, absl::Duration now, Origin origin)
      : options(job),
        roster(options),
        declarations(&roster),
        steps(&options, &roster, &declarations),
        planning(&options, &roster, origin.epoch),
        reattachment(&options, &roster),
        admission(&options, std::move(origin), &roster, &planning, &reattachment),
        outcome(&options, &roster),
        departures(&options, &roster, &outcome, &steps.efficiency()),
        liveness(&options, &roster, now),
        start_timeout(&options, &roster, admission.may_resume(), now) {}
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  Phase phase() const {
    if (outcome.has_ended()) return Phase::kEnded;
    if (reattachment.is_under_way()) return Phase::kReattaching;
    return planning.has_plan() ? Phase::kRunning : Phase::kGathering;
  }
  // Returns whether the job has a plan in force, known or not.
  bool has_begun() const { return reattachment.is_under_way() || planning.has_plan(); }
  // Returns whether every rank takes part in steps under the plan in force.
  bool are_all_in_steps() const { return !departures.is_ending() && !reattachment.is_under_way(); }

  const Options options;
  Roster roster;
  Declarations declarations;
  StepMonitor steps;
  Planning planning;
  Reattachment reattachment;
  Admission admission;
  Outcome outcome;
  Departures departures;
  Liveness liveness;
  StartTimeout start_timeout;
};

}  // namespace gleaner::coordinator
