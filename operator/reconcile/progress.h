// Progress writes the coordinator session's report about an attempt into the job's status and its ReductionPlan. Pure.
#pragma once

#include <optional>
#include <string>

#include "common/api/reduction_plan.h"
#include "operator/reconcile/observation.h"
#include "operator/reconcile/status_update.h"
#include "operator/reconcile/workers.h"

namespace gleaner::reconcile {

struct ProgressDecision {
  StatusUpdate update;
  std::optional<api::ReductionPlan> plan;  // to write
};

class Progress {
 public:
  // Both references must outlive this object.
  Progress(const Observation& observation, const Workers& workers) : observation_(observation), workers_(workers) {}

  ProgressDecision decide(StatusUpdate update) const;

 private:
  // A condition that people should look at, and its reasons while it is true and false.
  struct Trouble {
    const char* condition;
    const char* reason;
    const char* reason_of_end;
  };
  void report(const Trouble& trouble, const std::string& message, StatusUpdate& update) const;

  const Observation& observation_;
  const Workers& workers_;
};

}  // namespace gleaner::reconcile
