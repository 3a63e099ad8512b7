// FollowedPlans holds the plans that a member follows: the one in force, and the one that it has prepared to replace
// it. It decides what Prepare and Commit mean for the member. It also remembers which plans owners follow, since a
// member without a coordinator commits the plan that others have committed. Pure; belongs to one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "common/plan/plan.h"

namespace gleaner::member {

class FollowedPlans {
 public:
  // Takes a plan that the coordinator has the member prepare. Returns false if that plan is in force already, as may be
  // if the coordinator is another one; the member then acknowledges it once more.
  bool prepare(std::shared_ptr<const plan::Plan> plan) {
    if (has_begun() && plan->epoch == committed_epoch()) return false;
    prepared_ = std::move(plan);
    heard_ = std::max(heard_, prepared_->epoch);
    return true;
  }
  void forget_prepared() { prepared_ = nullptr; }
  // Brings the prepared plan into force, if it is that of `epoch`. Returns false if the plan of `epoch` is in force
  // already. Internal: the plan was not prepared.
  absl::StatusOr<bool> commit(uint32_t epoch);
  // Brings the prepared plan into force if it is the latest that any owner follows. `ranks_only`: that any worker's
  // summer follows. Returns whether it did.
  bool commit_as_others(bool ranks_only);

  bool has_begun() const { return committed_ != nullptr; }  // a plan was committed
  const std::shared_ptr<const plan::Plan>& prepared() const { return prepared_; }
  const std::shared_ptr<const plan::Plan>& committed() const { return committed_; }
  uint32_t prepared_epoch() const { return prepared_ != nullptr ? prepared_->epoch : 0; }
  // Returns the highest epoch that the member was told to prepare, if it is above that of the plan in force; else 0. A
  // member tells it to the next coordinator, which must not use the epoch of a withdrawn plan again: another member may
  // follow that plan.
  uint32_t heard_epoch() const { return heard_ > committed_epoch() ? heard_ : 0; }
  uint32_t committed_epoch() const { return committed_ != nullptr ? committed_->epoch : 0; }

  // Records that an owner follows the plan of `epoch`. `by_rank`: the owner is a worker's summer.
  void on_owner_follows(uint32_t epoch, bool by_rank) {
    owners_epoch_ = std::max(owners_epoch_, epoch);
    if (by_rank) ranks_epoch_ = std::max(ranks_epoch_, epoch);
  }

 private:
  std::shared_ptr<const plan::Plan> prepared_;
  std::shared_ptr<const plan::Plan> committed_;
  uint32_t heard_ = 0;
  uint32_t owners_epoch_ = 0;  // highest epoch that any owner follows
  uint32_t ranks_epoch_ = 0;   // highest epoch that any worker's summer follows
};

}  // namespace gleaner::member
