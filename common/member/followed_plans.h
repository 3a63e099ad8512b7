// FollowedPlans holds the plans that a member follows: the one in force, and the one that it has prepared to replace
// it. It also remembers which plans owners follow, since a member without a coordinator commits the plan that others
// have committed. Pure; belongs to one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "common/plan/plan.h"

namespace gleaner::member {

class FollowedPlans {
 public:
  void prepare(std::shared_ptr<const plan::Plan> plan) { prepared_ = std::move(plan); }
  void forget_prepared() { prepared_ = nullptr; }
  // Brings the prepared plan into force.
  void commit() { committed_ = std::exchange(prepared_, nullptr); }

  bool has_begun() const { return committed_ != nullptr; }  // a plan was committed
  const std::shared_ptr<const plan::Plan>& prepared() const { return prepared_; }
  const std::shared_ptr<const plan::Plan>& committed() const { return committed_; }
  uint32_t prepared_epoch() const { return prepared_ != nullptr ? prepared_->epoch : 0; }
  uint32_t committed_epoch() const { return committed_ != nullptr ? committed_->epoch : 0; }

  // Records that an owner follows the plan of `epoch`. `by_rank`: the owner is a worker's summer.
  void on_owner_follows(uint32_t epoch, bool by_rank) {
    owners_epoch_ = std::max(owners_epoch_, epoch);
    if (by_rank) ranks_epoch_ = std::max(ranks_epoch_, epoch);
  }
  // Returns whether the prepared plan is the latest that any owner follows. `ranks_only`: that any worker's summer
  // follows.
  bool others_follow_prepared(bool ranks_only) const {
    return prepared_ != nullptr && prepared_->epoch == (ranks_only ? ranks_epoch_ : owners_epoch_);
  }

 private:
  std::shared_ptr<const plan::Plan> prepared_;
  std::shared_ptr<const plan::Plan> committed_;
  uint32_t owners_epoch_ = 0;  // highest epoch that any owner follows
  uint32_t ranks_epoch_ = 0;   // highest epoch that any worker's summer follows
};

}  // namespace gleaner::member
