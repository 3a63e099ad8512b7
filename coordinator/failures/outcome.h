// Outcome decides how a job ends, and which member is the cause if it fails.
//
// A launcher may report how the processes of ranks end (on_exited()). When a rank's process dies, other ranks may
// notice broken connections, and fail, before the launcher has seen the exit. So Outcome keeps a loss as a *pending
// failure*, for at most Options::Launcher::exit_timeout. In that time the launcher may report how the lost rank's
// process ended, and the message of the failure then includes that. Or the launcher may report that a rank which had
// left cleanly exited with an error; then that rank is the cause. The exit of a rank that had not left is a loss, too.
// Such a loss is final at once unless a rank that left cleanly still runs.
//
// A loss is also kept as the pending failure while it has suspects (suspects.h). A suspect that sends a message is none
// any more. A suspect that is lost itself replaces the pending failure. Every suspect has done either of the two
// after the deadline, or, if it may return, return_timeout later. Otherwise the pending failure is final after that
// time.
//
// Without a launcher (its exit_timeout is 0) a failure without suspects is final immediately. The first final outcome
// stays. Functions that return bool return whether the job has ended with this call. Pure; belongs to a Core.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "coordinator/roster/findings.h"
#include "coordinator/roster/options.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

// Returns the error for a member that comes after its job has ended with `outcome`: FailedPrecondition, with the reason
// if the job has failed.
absl::Status has_ended(const absl::Status& outcome);

// How the process of a rank ended, as its launcher reports it.
struct RankExit {
  bool well = false;    // the exit status is 0
  std::string message;  // "exited with status 3", "was killed by signal 9 (SIGKILL)"
};

class Outcome {
 public:
  // The pointers must outlive this object.
  Outcome(const Options* options, const Roster* roster) : options_(*options), roster_(*roster) {}

  // None while the job goes on; OK once every rank has left cleanly.
  const std::optional<absl::Status>& status() const { return status_; }
  bool has_ended() const { return status_.has_value(); }
  // Returns whether the job has failed, or fails once the pending failure is final.
  bool has_failed() const { return has_ended() || pending_.has_value(); }
  // Returns whether the job fails once the pending failure is final, so its cause is still open.
  bool is_undecided() const { return pending_.has_value(); }
  // Returns whether the pending failure has suspects.
  bool has_suspects() const { return pending_.has_value() && !pending_->suspects.empty(); }
  // Returns the status that the member in this seat gets: its worker's own error, if a local rank of its worker has
  // reported one, and status() otherwise. Requires has_ended().
  const absl::Status& status_for(uint32_t seat) const;
  // Requires has_failed().
  const absl::Status& why_failed() const { return has_ended() ? *status_ : pending_->status; }
  std::optional<uint32_t> culprit() const { return culprit_; }
  bool is_loss() const { return is_loss_; }
  bool any_rank_joined() const { return any_rank_joined_; }

  bool fail(const Failure& failure, absl::Duration now);
  // Ends the job with OK, unless it has failed.
  bool succeed();
  // Records that the member in this seat has sent a message: it is no suspect.
  void on_heard(uint32_t seat) {
    if (has_suspects()) pending_->suspects.erase(seat);
  }
  // Makes a pending failure final once it is due.
  bool on_tick(absl::Duration now);

  void on_rank_joined() { any_rank_joined_ = true; }
  void on_left_cleanly(uint32_t seat) { left_cleanly_.insert(seat); }
  // The launcher has reported how the process of the rank in this seat ended. `steps`: text about the rank's progress,
  // which follows the cause in messages.
  bool on_exited(uint32_t seat, const RankExit& exit, bool has_job_begun, absl::string_view steps, absl::Duration now);
  // Fails the job if the process of a rank has ended before the rank joined, since the others would wait for that rank.
  // While no rank has joined, an exit is no error: a command that does not use Gleaner never joins.
  bool check_exits_before_start();
  // Returns a local rank of the same worker that has left cleanly: the worker's other local ranks can't go on without
  // it.
  std::optional<uint32_t> local_rank_that_left(uint32_t seat) const;

 private:
  struct Pending {
    absl::Status status;
    uint32_t seat = 0;
    absl::Duration since;
    bool explained = false;  // `status` includes how the process ended
    std::set<uint32_t> suspects;
  };
  bool is_exit_awaited(uint32_t seat) const;
  bool is_leaver_undecided() const;
  bool may_replace_pending_failure(uint32_t seat) const;
  bool is_suspect(uint32_t seat) const { return has_suspects() && pending_->suspects.contains(seat); }
  bool is_settled() const;
  bool end(absl::Status status, std::optional<uint32_t> culprit, bool is_loss);
  bool end_by_exit(const std::string& message, uint32_t seat);
  void hold(const std::string& message, uint32_t seat, absl::Duration now);
  bool end_by_pending_failure();

  const Options& options_;
  const Roster& roster_;
  std::optional<absl::Status> status_;
  std::map<uint32_t, absl::Status> own_;  // by worker: the error that a local rank of it has reported
  std::optional<uint32_t> culprit_;
  bool is_loss_ = false;
  std::optional<Pending> pending_;
  bool any_rank_joined_ = false;
  std::map<uint32_t, RankExit> exits_;  // by seat
  std::set<uint32_t> left_cleanly_;     // seats of ranks
};

}  // namespace gleaner::coordinator
