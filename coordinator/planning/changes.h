// ChangeCounter counts the changes of a job's summers and plans. Pure; belongs to Planning.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "coordinator/planning/plan_agreement.h"

namespace gleaner::coordinator {

// The counts of one job or round.
struct Changes {
  uint32_t moved = 0;           // optional plans committed: they reassigned all partitions
  uint32_t strategies = 0;      // of these, the plans that changed strategies
  uint32_t recovered = 0;       // recovery plans committed: they left out a lost summer
  uint32_t withdrawn = 0;       // optional plans withdrawn: a rank refused, or a member did not acknowledge in time
  uint32_t lost = 0;            // summers lost
  uint32_t came = 0;            // summers that joined after the first plan
  uint32_t left = 0;            // summers that left cleanly or were released
  double recovery_seconds = 0;  // from the loss of a summer to the commit of a plan without it, summed

  Changes& operator+=(const Changes& more) {
    moved += more.moved;
    strategies += more.strategies;
    recovered += more.recovered;
    withdrawn += more.withdrawn;
    lost += more.lost;
    came += more.came;
    left += more.left;
    recovery_seconds += more.recovery_seconds;
    return *this;
  }
};

class ChangeCounter {
 public:
  void on_summer_came() { ++changes_.came; }
  void on_summer_left() { ++changes_.left; }
  void on_withdrawn() { ++changes_.withdrawn; }
  void on_strategies_changed() { ++changes_.strategies; }
  // Counts a lost summer. `recovery_is_needed`: the plan in force includes a lost summer.
  void on_summer_lost(bool recovery_is_needed, absl::Duration now);
  // Counts a committed plan. `recovery_is_needed`: this plan, too, includes a lost summer.
  void on_committed(PlanReason reason, bool recovery_is_needed, absl::Duration now);

  const Changes& changes() const { return changes_; }

 private:
  Changes changes_;
  // When the first summer was lost that the plan in force still includes; none: no such summer.
  std::optional<absl::Duration> lost_at_;
};

}  // namespace gleaner::coordinator
