// TimeLimits has the parts check their deadlines, and carries out the findings: members that did not join in time, do
// not acknowledge a plan, are silent or did not return, tensors that some ranks do not declare, and ranks that wait for
// each other. It also sends heartbeats, and has optional plans proposed that are due. Pure; belongs to a Core.
#pragma once

#include "absl/time/time.h"
#include "coordinator/core/lifecycle.h"
#include "coordinator/core/parts.h"
#include "coordinator/roster/messages.h"

namespace gleaner::coordinator {

class TimeLimits {
 public:
  // The pointers must outlive this object.
  TimeLimits(Parts* parts, Lifecycle* lifecycle) : parts_(*parts), lifecycle_(*lifecycle) {}

  // See Core::on_tick().
  void on_tick(absl::Duration now, Actions& actions);

 private:
  void check_start(absl::Duration now, Actions& actions);
  void check_liveness(absl::Duration now, Actions& actions);
  void check_waiting_ranks(absl::Duration now, Actions& actions);
  void give_up_overdue_summers(absl::Duration now, Actions& actions);

  Parts& parts_;
  Lifecycle& lifecycle_;
};

}  // namespace gleaner::coordinator
