#include "operator/reconcile/decision.h"

namespace gleaner::reconcile {

const api::TrainingJobStatus* Decision::status() const {
  for (const Step& step : steps_) {
    if (const auto* write = std::get_if<WriteStatus>(&step.action); write != nullptr) return &write->status;
  }
  return nullptr;
}

}  // namespace gleaner::reconcile
