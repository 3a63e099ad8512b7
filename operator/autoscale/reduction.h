// Reduction decides which summers one job loses in one round, whatever other jobs want: summers whose machines are
// needed by their owners, summers that do not start or are above the maximum, and summers that are idle.
#pragma once

#include "absl/time/time.h"
#include "operator/autoscale/autoscale.h"
#include "operator/autoscale/job_memory.h"

namespace gleaner::autoscale {

class Reduction {
 public:
  // All references must outlive this object.
  Reduction(const Settings& settings, const Job& job, absl::Duration now, JobMemory& memory, Verdict& verdict)
      : settings_(settings), job_(job), now_(now), memory_(memory), verdict_(verdict) {}

  // Adds the removals to the memory and the verdict. Those of earlier rounds are repeated until the summer is gone.
  void decide();

 private:
  void notice_gone();
  void repeat_removals();
  void remove_unsuitable();
  void remove_above_maximum();
  void remove_idle();

  const Settings& settings_;
  const Job& job_;
  const absl::Duration now_;
  JobMemory& memory_;
  Verdict& verdict_;
};

}  // namespace gleaner::autoscale
