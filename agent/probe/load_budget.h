// LoadBudget limits for which share of time measurements of bandwidth load this node's NIC, asked and answered ones
// together, and keeps them away from a NIC that others use.
//
// A load of t seconds is paid off kPayOff * t after its begin: one of 0.2 s each way takes 400 s. A measurement that
// can wait begins only when all earlier loads are paid off. One that can't wait, of a NIC whose speed is unknown,
// begins at once and adds to what is owed. So loads take at most 1 / kPayOff of the time, 0.1 %, and more for a while
// only where speeds are unknown. Thread safe.
#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/env.h"

namespace gleaner::probe {

inline constexpr int64_t kPayOff = 1000;
inline constexpr double kMostUse = 0.2;  // of the NIC's speed, at which a measurement may begin

class LoadBudget {
 public:
  // Counts the time from its construction to its destruction as a load.
  class Load {
   public:
    // Both references must outlive the object. `budget` may be null: no budget pays for the load.
    Load(LoadBudget* budget, const Clock& clock);
    ~Load();
    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;

   private:
    LoadBudget* const budget_;
    const Clock& clock_;
    const absl::Duration begin_;
  };

  // Sets the NIC's speed (0: unknown) and its use in the busier direction, in bits per second.
  void set_nic(double speed, double used) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns whether a measurement that can wait may begin: all loads are over and paid off, and at most kMostUse of the
  // NIC's speed is in use. False while the speed is unknown.
  bool allows(absl::Duration now) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void begin() ABSL_LOCKS_EXCLUDED(mutex_);
  void end(absl::Duration begin, absl::Duration end) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable absl::Mutex mutex_;
  int loads_ ABSL_GUARDED_BY(mutex_) = 0;  // in progress
  absl::Duration paid_off_at_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  bool nic_is_free_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gleaner::probe
