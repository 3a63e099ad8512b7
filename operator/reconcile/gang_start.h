// GangStart decides how an attempt begins. Its workers are created as a gang: their scheduling gates open once all pods
// exist, and either all of them run, or all release their machines. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/reconcile/observation.h"
#include "operator/reconcile/pods.h"
#include "operator/reconcile/status_update.h"
#include "operator/reconcile/steps.h"
#include "operator/reconcile/workers.h"

namespace gleaner::reconcile {

struct StartDecision {
  StatusUpdate update;
  std::vector<PodRemoval> remove;      // pods of earlier attempts
  std::vector<nlohmann::json> create;  // worker pods that are missing
  std::vector<PodRelease> release;     // workers whose gate opens
  bool launched = false;               // all workers have existed: the attempt may go on
  // The reasons for which the attempt can't go on. If one is set, only `update` of the fields above is valid.
  std::optional<std::string> invalid_template;  // no pod can be made from the job's template, for this reason
  std::optional<std::string> late;              // a text for people: not all workers ran within startDeadlineSeconds
};

class GangStart {
 public:
  // All references must outlive this object.
  GangStart(const Observation& observation, const Workers& workers, const PodSettings& settings)
      : observation_(observation), job_(observation.job), workers_(workers), settings_(settings) {}

  StartDecision decide(StatusUpdate update) const;

 private:
  bool may_start(StartDecision& start) const;
  void create_workers(StartDecision& start) const;
  void postpone_creation(StartDecision& start) const;
  void open_gates(StartDecision& start) const;
  void explain_waiting(StatusUpdate& update) const;
  std::optional<std::string> find_late(StatusUpdate& update) const;
  void note_running(StatusUpdate& update) const;

  const Observation& observation_;
  const api::TrainingJob& job_;
  const Workers& workers_;
  const PodSettings& settings_;
};

}  // namespace gleaner::reconcile
