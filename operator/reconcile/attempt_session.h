// AttemptSession decides with which options the coordinator session of an attempt is opened, and which ends of members
// the operator reports to the session because the API server shows them first. Pure.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/reconcile/observation.h"
#include "operator/reconcile/steps.h"
#include "operator/reconcile/workers.h"

namespace gleaner::reconcile {

// Summers were lost before the session had its first plan.
struct EarlyLoss {
  // The smaller number of summers for which the session is to wait. Absent while the session still counts a lost summer
  // as joined.
  std::optional<uint32_t> summers;
};

class AttemptSession {
 public:
  // Both references must outlive this object.
  AttemptSession(const Observation& observation, const Workers& workers)
      : observation_(observation), job_(observation.job), workers_(workers) {}

  // InvalidArgument: the strategy has no such parameters. check_strategy() has refused such a job, unless its strategy
  // was changed after its first pod.
  absl::StatusOr<coordinator::Options> options() const;
  // Returns the workers that have ended, to be reported to the session. A worker that has succeeded is one of them even
  // if its pod is gone: a session that is opened again must not wait for its return.
  std::vector<EndedMember> ended_workers() const;
  // Returns nullopt if the session does not wait for its first plan, or no summer is lost.
  std::optional<EarlyLoss> early_loss() const;

 private:
  const Observation& observation_;
  const api::TrainingJob& job_;
  const Workers& workers_;
};

}  // namespace gleaner::reconcile
