#include "coordinator/planning/plan_agreement.h"

#include <algorithm>
#include <utility>

#include "common/base/faults.h"

namespace gleaner::coordinator {

void PlanAgreement::on_known_epoch(uint32_t epoch) { highest_epoch_ = std::max(highest_epoch_, epoch); }

bool PlanAgreement::is_withdrawn(uint32_t epoch) const {
  return !is_proposed(epoch) && epoch > in_force_->epoch && epoch <= highest_epoch_;
}

void PlanAgreement::propose(plan::Plan plan, PlanReason reason, absl::Duration now) {
  proposed_ = std::make_shared<const plan::Plan>(std::move(plan));
  proposed_at_ = now;
  reason_ = reason;
  highest_epoch_ = proposed_->epoch;
}

bool PlanAgreement::is_acknowledgement_missing(uint32_t seat) const {
  if (seat == 0 && GLN_MUTATION("a plan is committed without a worker's word")) return false;
  return roster_[seat].state != Seat::State::kLeft && roster_[seat].acknowledged < proposed_->epoch &&
         roster_.is_part_of(*proposed_, seat);
}

// Starts at the seat whose acknowledgement the last call found missing, since it is often still missing. So a call
// seldom looks at all seats.
bool PlanAgreement::is_acknowledgement_missing() {
  for (uint32_t checked = 0; checked < roster_.size(); ++checked) {
    first_to_check_ %= roster_.size();
    if (is_acknowledgement_missing(first_to_check_)) return true;
    ++first_to_check_;
  }
  return false;
}

std::shared_ptr<const plan::Plan> PlanAgreement::commit_if_acknowledged() {
  if (proposed_ == nullptr || is_acknowledgement_missing()) return nullptr;
  return std::exchange(in_force_, std::exchange(proposed_, nullptr));
}

std::vector<uint32_t> PlanAgreement::unacknowledged() const {
  std::vector<uint32_t> seats;
  for (uint32_t seat = 0; seat < roster_.size(); ++seat) {
    if (is_acknowledgement_missing(seat)) seats.push_back(seat);
  }
  return seats;
}

}  // namespace gleaner::coordinator
