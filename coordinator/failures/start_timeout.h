// StartTimeout fails a job whose members do not join, or do not return after a change of coordinators, within
// Options::start_timeout.
//
// Until then StartTimeout warns of missing members: first after kStallAfter, then every kMissingEvery. Pure; belongs to
// a Core.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "coordinator/roster/findings.h"
#include "coordinator/roster/messages.h"
#include "coordinator/roster/options.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

class StartTimeout {
 public:
  // `may_resume`: the operator runs this coordinator, and itself reports pods that do not run; so StartTimeout warns
  // only once some member waits for others. The pointers must outlive this object.
  StartTimeout(const Options* options, const Roster* roster, bool may_resume, absl::Duration now)
      : options_(*options), roster_(*roster), may_resume_(may_resume), started_(now) {}

  // Adds the warning that is due, and returns the failure of the job once the time is over. To be called regularly
  // while no plan is in force or proposed. `reattaching`: members return, rather than join. `asked`: the member that
  // was asked for its plan.
  std::optional<Failure> on_tick(bool reattaching, std::optional<uint32_t> asked, absl::Duration now, Actions& actions);

 private:
  std::optional<Failure> check(bool reattaching, std::optional<uint32_t> asked, absl::Duration now) const;
  std::optional<std::string> warning(bool reattaching, absl::Duration now);
  bool is_over(absl::Duration now) const { return now - started_ > options_.start_timeout; }

  const Options& options_;
  const Roster& roster_;
  const bool may_resume_;
  const absl::Duration started_;
  absl::Duration next_warning_;
};

}  // namespace gleaner::coordinator
