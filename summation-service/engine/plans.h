// Plans holds the plan that an owner follows and the prepared plan that comes next, and decides which frames belong to
// which plan.
//
// Fencing: a frame whose epoch is before the `since` of its partition was meant for an earlier owner.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"
#include "summation-service/engine/frames.h"

namespace gleaner::engine {

class Plans {
 public:
  explicit Plans(const Identity& identity) : identity_(identity) {}

  const std::shared_ptr<const plan::Plan>& in_force() const { return in_force_; }  // null before the first commit
  uint32_t epoch() const { return in_force_ == nullptr ? 0 : in_force_->epoch; }   // of the plan in force
  uint32_t prepared_epoch() const { return prepared_ == nullptr ? 0 : prepared_->epoch; }

  // Returns FailedPrecondition if `plan` is not a successor of the plan in force (plan/successor.h).
  absl::Status check_successor(const plan::Plan& plan) const;
  // Keeps a plan that has passed check_successor(), in place of the one prepared before.
  void prepare(std::shared_ptr<const plan::Plan> plan) { prepared_ = std::move(plan); }
  // Forgets the prepared plan if it has this epoch.
  void discard(uint32_t epoch);
  // Brings the prepared plan into force. There must be one.
  void commit();
  // Returns whether a frame of this epoch commits the prepared plan. It does if it has the plan's epoch: the
  // coordinator has then committed the plan, which it does only after all members have acknowledged it.
  bool commits(uint32_t epoch) const { return prepared_ != nullptr && prepared_->epoch == epoch; }

  // Checks that a frame comes from a worker of this job, and that its epoch is not after those of the plans in this
  // object.
  absl::Status check_frame(uint32_t worker, const wire::Header& header) const;
  // Returns whether a frame of `epoch` was meant for an earlier owner of the partition. InvalidArgument if the
  // partition does not exist, or if another member owns it. Needs a plan in force.
  absl::StatusOr<bool> is_fenced(uint32_t worker, uint32_t epoch, const wire::PartitionKey& key) const;

 private:
  const Identity identity_;
  std::shared_ptr<const plan::Plan> in_force_;
  std::shared_ptr<const plan::Plan> prepared_;  // null: none
};

}  // namespace gleaner::engine
