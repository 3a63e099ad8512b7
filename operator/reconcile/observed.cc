#include "operator/reconcile/observed.h"

namespace gleaner::reconcile {

bool has_begun(const Observed& observed) {
  using Phase = coordinator::JobState::Phase;
  return observed.session.has_value() && observed.session->epoch > 0 && observed.session->phase == Phase::kRunning;
}

}  // namespace gleaner::reconcile
