// decide() computes the actions of the operator for one TrainingJob.
//
// decide() is pure and level-triggered: the decision follows from the observation. Only the job's status, its pods
// and its ReductionPlan carry state from one call to the next, so any replica of the operator can continue.
//
// The life of a job:
//
//   Pending ── pods created ──▶ Starting ── all run ──▶ Running ── all exit with 0 ──▶ Succeeded
//      ▲                           │                       │
//      └── pods released ◀─────────┘                       └── a member is lost ──▶ Restarting, or Failed
//          (not all ran in time)
//
// An attempt is one set of pods and one coordinator session. Its number is in the pods' names and labels. The number of
// a new attempt is written into the job's status first, guarded by the resource version, and its pods are created only
// then. So two operators can't create different pods.
//
// decide() finds out which case a job is in and composes the decisions of the classes that handle the cases: JobEnd
// (job_end.h), GangStart (gang_start.h), SummerPlacement (summer_placement.h), AttemptSession (attempt_session.h),
// SummerScaling (summer_scaling.h) and Progress (progress.h).
#pragma once

#include "operator/reconcile/decision.h"
#include "operator/reconcile/observation.h"
#include "operator/reconcile/pods.h"

namespace gleaner::reconcile {

Decision decide(const Observation& observation, const PodSettings& settings);

}  // namespace gleaner::reconcile
