#include "coordinator/planning/changes.h"

namespace gleaner::coordinator {

void ChangeCounter::on_summer_lost(bool recovery_is_needed, absl::Duration now) {
  ++changes_.lost;
  if (recovery_is_needed && !lost_at_.has_value()) lost_at_ = now;
}

void ChangeCounter::on_committed(PlanReason reason, bool recovery_is_needed, absl::Duration now) {
  if (lost_at_.has_value() && !recovery_is_needed) {
    changes_.recovery_seconds += absl::ToDoubleSeconds(now - *lost_at_);
    lost_at_.reset();
  }
  if (reason == PlanReason::kRecovery) ++changes_.recovered;
  if (reason == PlanReason::kOptional) ++changes_.moved;
}

}  // namespace gleaner::coordinator
