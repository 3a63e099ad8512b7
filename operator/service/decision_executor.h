// DecisionExecutor carries out the steps of a Decision in order, and returns their outcome. A step that fails keeps
// only the steps that need it from being carried out. DecisionExecutor changes no decision: if the API server refuses
// an object that the start of the workers needs, the decision that refused_start() returns replaces the steps that are
// left.
//
// Thread safe: several threads may call it at the same time for different jobs, but not for the same job.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "operator/reconcile/decision.h"
#include "operator/reconcile/observation.h"
#include "operator/service/step_runner.h"

namespace gleaner::operation {

struct Outcome {
  absl::Status failure;                         // the first error of a step, which usually explains the others
  size_t done = 0;                              // number of steps that were carried out and did not fail
  bool refused = false;                         // the API server refused an object that the start of the workers needs
  api::TrainingJobStatus status;                // of the decision, or of the one that replaced it
  std::vector<reconcile::EventNote> events;     // Events that steps caused, which the executor has recorded
  std::optional<absl::Duration> requeue_after;  // reconcile again after this time even if nothing changes
};

class DecisionExecutor {
 public:
  explicit DecisionExecutor(const StepRunner::Parts& parts) : runner_(parts) {}

  // `decision` is that of decide() for `observation`.
  Outcome carry_out(const reconcile::Observation& observation, const reconcile::Decision& decision) const;

 private:
  const StepRunner runner_;
};

}  // namespace gleaner::operation
