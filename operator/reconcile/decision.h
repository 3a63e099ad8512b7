// Decision is the list of steps that the operator carries out for one TrainingJob, in order. It is a value, which does
// not change after it was made.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "operator/reconcile/steps.h"

namespace gleaner::reconcile {

class Decision {
 public:
  Decision(std::vector<Step> steps, std::optional<absl::Duration> requeue_after)
      : steps_(std::move(steps)), requeue_after_(requeue_after) {}

  const std::vector<Step>& steps() const { return steps_; }
  // The time after which the operator decides again even if nothing changes.
  std::optional<absl::Duration> requeue_after() const { return requeue_after_; }
  // Returns the status that the decision writes; null: it writes none.
  const api::TrainingJobStatus* status() const;

 private:
  std::vector<Step> steps_;
  std::optional<absl::Duration> requeue_after_;
};

}  // namespace gleaner::reconcile
