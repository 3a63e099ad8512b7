// Reports of owners that a worker can't reach: what the worker has to tell the coordinator, and when. Pure: events in,
// actions out.
//
// A report may be lost with the stream that carries it, and a coordinator that heard it may be lost, too. So a report
// is repeated until a plan without that member is in force, or the path to the member has healed.
//
// If no coordinator can come back, nobody makes such a plan: a member that has been out of reach for the deadline, and
// from which sums are due, then ends the session. If a coordinator may come back, the session waits for it for
// plan_timeout, as a tensor waits for its plan.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/plan/plan.h"

namespace gleaner::supervision {

struct Report {
  uint32_t member = 0;
  absl::Status why;
};

// Filled by Reports, emptied and reused by the caller.
struct Told {
  std::vector<Report> reports;  // to be sent to the coordinator
  std::vector<std::string> warnings;
  absl::Status failure;  // not OK: the session can't go on
};

class Reports {
 public:
  struct Options {
    absl::Duration deadline = absl::Seconds(10);      // with a member out of reach and no coordinator; the job's
    absl::Duration plan_timeout = absl::Minutes(10);  // with a coordinator that may come back
    absl::Duration repeat_every = absl::Seconds(1);
    absl::Duration warn_every = absl::Seconds(5);
  };

  explicit Reports(const Options& options) : options_(options) {}

  // `member` has been out of reach since `since`. on_plan() comes before.
  void add(uint32_t member, absl::Duration since, const absl::Status& why, absl::Duration now);
  // The path to it has healed, or nothing is due from it any more.
  void withdraw(uint32_t member) { open_.erase(member); }
  // In force. Reports of members that it does not have any more are done with.
  void on_plan(const plan::Plan& plan);
  void on_coordinator_lost(absl::Duration now);
  void on_coordinator_found();
  // It is lost, and none will take its place.
  void on_coordinator_gone(const absl::Status& why);
  // Every few milliseconds. `sums`: members from which sums are due.
  void tick(absl::Duration now, const std::vector<uint32_t>& sums, Told& told);

 private:
  struct Open {
    absl::Duration since;
    absl::Duration say_at;
    absl::Duration warn_at;
    absl::Status why;
  };
  absl::Status give_up(uint32_t member, const Open& open, absl::Duration now) const;

  const Options options_;
  std::map<uint32_t, Open> open_;  // by member
  std::vector<uint32_t> since_;    // of each member of the plan: who it is
  std::vector<std::string> names_;
  std::optional<absl::Duration> away_since_;  // the coordinator is lost, and may come back
  absl::Status gone_;                         // not OK: it won't
};

}  // namespace gleaner::supervision
