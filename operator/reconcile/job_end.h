// JobEnd decides what happens when a job or an attempt of it ends: success, failure, restart, suspension, clean-up.
// Pure. Each function decides one kind of end. It takes the status as decided so far and returns it with its changes.
#pragma once

#include <string>
#include <vector>

#include "operator/reconcile/failure.h"
#include "operator/reconcile/observation.h"
#include "operator/reconcile/pauses.h"
#include "operator/reconcile/status_update.h"
#include "operator/reconcile/steps.h"

namespace gleaner::reconcile {

struct EndDecision {
  StatusUpdate update;
  std::string end_session;  // the reason for which the coordinator session ends
  std::vector<PodRemoval> remove;
  bool remove_job = false;
};

class JobEnd {
 public:
  // `observation` must outlive this object.
  explicit JobEnd(const Observation& observation) : observation_(observation), job_(observation.job) {}

  // Ends a job that was deleted. Kubernetes deletes the objects that the job owns.
  EndDecision abandon(StatusUpdate update) const;
  EndDecision succeed(StatusUpdate update) const;
  EndDecision fail(StatusUpdate update, const std::string& reason, const std::string& message) const;
  // Cleans up a job that has succeeded or failed: removes the pods that cleanPodPolicy names, and the job itself after
  // its ttl.
  EndDecision clean_up(StatusUpdate update) const;
  EndDecision suspend(StatusUpdate update) const;
  EndDecision resume(StatusUpdate update) const;
  // Starts the workers again, or fails the job, according to the kind of `failure`, which must not be kUndecided.
  EndDecision restart(StatusUpdate update, const Failure& failure) const;
  // Ends an attempt whose workers did not all run in time, so that other jobs can take the machines. `message` says
  // which deadline has passed.
  EndDecision release_gang(StatusUpdate update, const std::string& message) const;

 private:
  // `pauses`: those before the next attempt; null: it begins at once, and a new series of tries with it.
  EndDecision begin_next_attempt(StatusUpdate update, const std::string& why, const Pauses* pauses) const;

  const Observation& observation_;
  const api::TrainingJob& job_;
};

}  // namespace gleaner::reconcile
