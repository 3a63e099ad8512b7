// SummerScaling handles summers that come, go and are lost while an attempt runs. It carries out the autoscaler's
// request, and reports summers whose pods have ended. A job never restarts because of a summer. Pure.
#pragma once

#include <vector>

#include "operator/reconcile/observation.h"
#include "operator/reconcile/pods.h"
#include "operator/reconcile/status_update.h"
#include "operator/reconcile/steps.h"

namespace gleaner::reconcile {

struct ScalingDecision {
  StatusUpdate update;
  CreateSummers create;
  std::vector<PodRemoval> remove;
  std::vector<EndedMember> ended;      // to report to the session
  std::vector<SummerRelease> release;  // summers that the session's next plan is to leave out
};

class SummerScaling {
 public:
  // Both references must outlive this object.
  SummerScaling(const Observation& observation, const PodSettings& settings)
      : observation_(observation), job_(observation.job), settings_(settings) {}

  // Requires has_begun(observation).
  ScalingDecision decide(StatusUpdate update) const;

 private:
  void report_ended_summer(const PodView& summer, ScalingDecision& decision) const;
  void report_vanished_summers(ScalingDecision& decision) const;
  bool was_released(const PodView& summer) const;  // whether the summer was told to leave
  // `alive`: summers that run or will run.
  void apply_scaling(const std::vector<const PodView*>& alive, ScalingDecision& decision) const;
  void remove_summer(const PodView& summer, const autoscale::Removal& removal, ScalingDecision& decision) const;

  const Observation& observation_;
  const api::TrainingJob& job_;
  const PodSettings& settings_;
};

}  // namespace gleaner::reconcile
