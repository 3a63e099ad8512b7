// Reports decides when the worker reports to the coordinator that it can't reach a member, and when the session fails
// without an answer. Pure: events in, actions out.
//
// A report may be lost with the stream that carries it, and a coordinator that has received it may be lost as well. So
// a report is repeated until a plan without that member is in force or the report is withdrawn.
//
// If no coordinator can return, no plan without the member can be made. The session then fails when a member from which
// results are due has been out of reach for the deadline. If a coordinator may return, the session waits plan_timeout
// for it, as a tensor waits for its plan.
//
// No plan can be made without another worker (add_worker()). Its report asks the coordinator for a verdict: the
// coordinator sees all members, so it names the member that has failed to every rank at once, while a rank that failed
// by itself would close its connections, and others might take that for the cause. The session fails by itself after
// verdict_timeout, or while there is no coordinator.
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

// Actions for the caller. Reports appends to it; the caller carries it out, clears it and passes it again.
struct ReportActions {
  std::vector<Report> reports;  // for the coordinator
  std::vector<std::string> warnings;
  absl::Status failure;                 // not OK: the session has failed
  std::optional<uint32_t> lost_worker;  // the worker without which it has failed, if `failure` is about one
};

class Reports {
 public:
  struct Options {
    absl::Duration deadline = absl::Seconds(10);         // time to wait for a lost member without a coordinator
    absl::Duration plan_timeout = absl::Minutes(10);     // the same, while a coordinator may return
    absl::Duration verdict_timeout = absl::Seconds(15);  // for the coordinator to decide on the report of a worker
    absl::Duration repeat_every = absl::Seconds(1);
    absl::Duration warn_every = absl::Seconds(5);
  };

  explicit Reports(const Options& options) : options_(options) {}

  // Opens the report that `member` has been out of reach since `since`. The plan of the last on_plan() must have this
  // member.
  void add(uint32_t member, absl::Duration since, const absl::Status& why, absl::Duration now);
  // Opens the report that the other worker `member` is out of reach, and that the job ends for that reason.
  void add_worker(uint32_t member, const absl::Status& why, absl::Duration now);
  // Withdraws the report: the path to the member has made progress, or the worker no longer needs the member.
  void withdraw(uint32_t member) { open_.erase(member); }
  // Records that `plan` is in force. Withdraws reports of members that the plan does not have.
  void on_plan(const plan::Plan& plan);
  void on_coordinator_lost(absl::Duration now);
  void on_coordinator_found();
  // Records that the coordinator is lost, and that no other will replace it.
  void on_coordinator_gone(const absl::Status& why);
  // To be called every few milliseconds. `sums`: the members from which results are due.
  void tick(absl::Duration now, const std::vector<uint32_t>& sums, ReportActions& actions);

 private:
  // A report that is repeated.
  struct OpenReport {
    absl::Duration since;
    // When to repeat the report, and the warning.
    absl::Duration repeat_at;
    absl::Duration warn_at;
    absl::Status why;
    bool is_of_worker = false;  // add_worker() has opened the report
  };
  void fail_without_verdict(uint32_t member, const OpenReport& open, absl::Duration now, ReportActions& actions) const;
  absl::Status failure_of(uint32_t member, const OpenReport& open, absl::Duration now) const;

  const Options options_;
  std::map<uint32_t, OpenReport> open_;  // by member
  std::vector<uint32_t> since_;  // by member: its Member::since, which distinguishes members of one place; 0: empty
  std::vector<std::string> names_;
  std::optional<absl::Duration> away_since_;  // when the coordinator was lost, if one may return
  absl::Status gone_;                         // not OK: no coordinator will return
};

}  // namespace gleaner::supervision
