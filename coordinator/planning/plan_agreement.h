// PlanAgreement holds the plan in force and the proposed plan, which comes into force once every member of it has
// acknowledged it. This is a two-phase commit: Prepare is the first phase, Commit the second.
//
// At most one plan is proposed at a time. Epochs only rise: the epoch of a withdrawn plan is not used again. The seats
// of the roster hold the acknowledgements (Seat::acknowledged). Pure; belongs to Planning.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "common/plan/plan.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

enum class PlanReason {
  kNeeded,    // the first plan, or a plan that adds tensors
  kRecovery,  // a summer was lost
  kOptional,  // the job can go on without this plan: a summer has joined or wants to leave, or a bandwidth has changed
};

class PlanAgreement {
 public:
  // `epoch`: the highest epoch that an earlier core of this job used. `roster` must outlive this object.
  PlanAgreement(const Roster* roster, uint32_t epoch) : roster_(*roster), highest_epoch_(epoch) {}

  const std::shared_ptr<const plan::Plan>& in_force() const { return in_force_; }          // epoch 0: no plan yet
  const std::shared_ptr<const plan::Plan>& proposed() const { return proposed_; }          // null: none
  uint32_t proposed_epoch() const { return proposed_ == nullptr ? 0 : proposed_->epoch; }  // 0: none
  // reason() and proposed_at() describe the proposed plan, or the last one if none is proposed.
  PlanReason reason() const { return reason_; }
  absl::Duration proposed_at() const { return proposed_at_; }

  // Returns the highest epoch that a member has heard of. The next plan's epoch is above it.
  uint32_t highest_epoch() const { return highest_epoch_; }
  // Records that a returning member has heard of a plan of this epoch.
  void on_known_epoch(uint32_t epoch);
  bool is_proposed(uint32_t epoch) const { return proposed_ != nullptr && proposed_->epoch == epoch; }
  // Returns whether a plan of this epoch was proposed after the plan in force, and then withdrawn.
  bool is_withdrawn(uint32_t epoch) const;

  // Requires that no plan is proposed and that the plan's epoch is above highest_epoch().
  void propose(plan::Plan plan, PlanReason reason, absl::Duration now);
  void withdraw() { proposed_ = nullptr; }
  // Puts a plan in force that members agreed on under another coordinator.
  void adopt(std::shared_ptr<const plan::Plan> plan) { in_force_ = std::move(plan); }
  // Puts the proposed plan in force if no acknowledgement is missing, and returns the plan that was in force before.
  // Otherwise returns null.
  std::shared_ptr<const plan::Plan> commit_if_acknowledged();
  // Returns the seats of the members that have not acknowledged the proposed plan.
  std::vector<uint32_t> unacknowledged() const;

 private:
  bool is_acknowledgement_missing(uint32_t seat) const;
  bool is_acknowledgement_missing();

  const Roster& roster_;
  uint32_t highest_epoch_;
  std::shared_ptr<const plan::Plan> in_force_ = std::make_shared<plan::Plan>();
  std::shared_ptr<const plan::Plan> proposed_;
  PlanReason reason_ = PlanReason::kNeeded;
  absl::Duration proposed_at_;
  uint32_t first_to_check_ = 0;  // the seat at which the next search for a missing acknowledgement starts
};

}  // namespace gleaner::coordinator
