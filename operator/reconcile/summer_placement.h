// SummerPlacement decides with which summers an attempt begins, on which machines they run, and when the attempt begins
// without some of them. Once the summers are settled, the ReductionPlan records them. Pure.
#pragma once

#include <vector>

#include "operator/reconcile/observation.h"
#include "operator/reconcile/pods.h"
#include "operator/reconcile/status_update.h"
#include "operator/reconcile/steps.h"
#include "operator/reconcile/workers.h"

namespace gleaner::reconcile {

struct PlacementDecision {
  StatusUpdate update;
  CreateSummers create;
  std::vector<PodRemoval> remove;  // summers without which the attempt begins
  bool settled = false;            // the attempt may begin with the summers that run
};

// Returns whether decide() may place the first summers of the attempt, and therefore needs Observation::candidates.
bool needs_candidates(const Observation& observation);

class SummerPlacement {
 public:
  // All references must outlive this object.
  SummerPlacement(const Observation& observation, const Workers& workers, const PodSettings& settings)
      : observation_(observation), job_(observation.job), workers_(workers), settings_(settings) {}

  // Requires that all workers are bound to nodes, since summers are placed on other machines than the workers.
  // Without the candidates that needs_candidates() asks for, the attempt waits.
  PlacementDecision decide(StatusUpdate update) const;

 private:
  PlacementDecision wait_for(const std::vector<const PodView*>& summers, StatusUpdate update) const;
  PlacementDecision wait_for_pods(StatusUpdate update) const;
  PlacementDecision place(StatusUpdate update) const;

  const Observation& observation_;
  const api::TrainingJob& job_;
  const Workers& workers_;
  const PodSettings& settings_;
};

}  // namespace gleaner::reconcile
