// DeadlockDetector finds ranks that wait for a sum which can't be made, because another rank does not declare the
// tensor, does not begin the push_pull since the two ranks wait for each other (stalls.h), or has left the job.
//
// If the other rank is busy, for example with loading a checkpoint, it may still do its part, so DeadlockDetector only
// warns, unless Options::DeclareTimeouts::busy is set. A rank that itself waits for another sum can't do its part.
// Pure; belongs to a StepMonitor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/measure/efficiency_meter.h"
#include "coordinator/measure/stalls.h"
#include "coordinator/planning/declarations.h"
#include "coordinator/roster/findings.h"
#include "coordinator/roster/messages.h"
#include "coordinator/roster/options.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

class DeadlockDetector {
 public:
  // The pointers must outlive this object.
  DeadlockDetector(const Options* options, const Roster* roster, const Declarations* declarations,
                   const EfficiencyMeter* efficiency)
      : options_(*options),
        roster_(*roster),
        declarations_(*declarations),
        efficiency_(*efficiency),
        stalls_(roster, options->declare_timeouts.waiting) {}

  // See Stalls.
  void on_waiting(uint32_t rank, std::optional<OldestPushPull> waiting) {
    stalls_.on_waiting(rank, std::move(waiting));
  }
  void on_begun(uint32_t rank, const std::string& tensor, uint64_t push_pulls) {
    stalls_.on_begun(rank, tensor, push_pulls);
  }
  std::string stall() const { return stalls_.lasting(); }

  // Each of the check functions returns the reason for which the job fails, if it does, and adds warnings that are due.
  // Checks for tensors that some ranks have not declared. Cheap, so it may be called with every declaration.
  std::optional<Failure> check_declarations(absl::Duration now, Actions& actions);
  // Checks for ranks that wait for each other. Sends Inquire to ranks. To be called while no rank has left.
  std::optional<Failure> check_stalls(absl::Duration now, Actions& actions);
  // Checks for ranks that wait for a rank that has left. `first_leave_at`: when the first rank left cleanly.
  std::optional<Failure> check_leavers(absl::Duration first_leave_at, absl::Duration now) const;
  // Returns a text that says that the rank `waiting` still needs the rank `left`, which has left.
  std::string describe_early_leave(uint32_t left, uint32_t waiting) const;

 private:
  std::string describe_wait(uint32_t rank) const;
  bool are_waiting(const std::vector<uint32_t>& ranks, absl::Duration now) const;

  const Options& options_;
  const Roster& roster_;
  const Declarations& declarations_;
  const EfficiencyMeter& efficiency_;
  Stalls stalls_;
  absl::Duration next_declaration_warning_;
};

}  // namespace gleaner::coordinator
