// Joining decides how a member finds its coordinator and joins: when it connects, which failures end its membership,
// and what a Welcome means for it. It also keeps what the member knows of its coordinator. Pure; belongs to one thread.
//
// If the coordinator can't be reached, the member tries again: before the first plan is committed until the timeout,
// and afterwards until it leaves. The member does not look for another coordinator if the lost one had admitted it and
// its Welcome named no session: such a coordinator can't be replaced.
//
// Several functions take `has_begun`: a plan was committed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/control/coordinator_messages.h"
#include "common/control/identity.h"
#include "common/member/connection_attempts.h"
#include "common/member/followed_plans.h"

namespace gleaner::member {

class Joining {
 public:
  struct Terms {
    bool is_summer = false;
    std::string coordinator;  // its address, for error messages
    absl::Duration timeout;   // as in JoinOptions
    Pace pace;
  };
  // `random` returns random numbers from 0 to 1.
  Joining(Terms terms, std::function<double()> random)
      : terms_(std::move(terms)), attempts_(terms_.pace, std::move(random)) {}

  void begin(absl::Duration now) { started_ = last_heard_ = now; }

  // The reaction to a failure: the member tries again later, it has failed, or it goes on without a coordinator.
  struct Retry {};
  struct Fail {
    absl::Status status;
  };
  struct GiveUp {
    absl::Status why;
  };
  using Reaction = std::variant<Retry, Fail, GiveUp>;

  // Connections.
  void connect(absl::Duration now);
  // Records that the connection has ended, or is to be dropped. Returns whether there was one.
  bool disconnect() { return attempts_.end(); }
  // Schedules the next attempt. `leaves`: the member only wants to leave.
  void retry_later(bool has_begun, bool leaves, absl::Duration now);
  void retry_now(absl::Duration now) { attempts_.retry_now(now); }
  enum class Step { kWait, kConnect, kTimedOut };  // kTimedOut: the attempt has failed
  // Returns what to do now, while the member is not admitted.
  Step next_step(absl::Duration now);

  // The handshake. on_challenged() returns whether the member is to answer.
  bool on_challenged(absl::Duration now);
  // Returns the state to show in the answer, if the member returns to a job.
  std::optional<control::Resume> resume(const FollowedPlans& plans) const;
  bool has_sent_join() const { return has_sent_join_; }  // on the last connection
  enum class Place {
    kUnchanged,   // the member has the place that it had before
    kNew,         // the member's first place, or another one
    kAnotherJob,  // the coordinator has begun another job
  };
  Place on_welcome(const control::Welcome& welcome, bool has_begun, absl::Duration now);

  // Failures. on_attempt_failed(): no connection was made, or the other end is not this job's coordinator, or has
  // refused the member.
  Reaction on_attempt_failed(const absl::Status& status, bool has_begun);
  // The coordinator that had admitted this member is lost. `may_be_in_force`: others may follow a plan that this member
  // has only prepared.
  Reaction on_lost(const absl::Status& why, bool has_begun, bool may_be_in_force);
  void on_given_up(const absl::Status& why) { last_failure_ = why; }
  void set_away(absl::Duration now) { away_since_ = now; }
  void set_back() { away_since_ = std::nullopt; }

  // Messages of the coordinator, and its silence.
  void on_heard(absl::Duration now) { last_heard_ = now; }
  // Records that this process did not run for `pause`. Messages that came meanwhile are still unread, so that time does
  // not count as silence.
  void on_pause(absl::Duration pause) { last_heard_ += pause; }

  // Return errors once the member has waited too long: to be admitted, for the job to begin after it was admitted, or
  // for a message on the connection.
  absl::Status check_admission(bool has_begun, absl::Duration now) const;
  absl::Status check_start(absl::Duration now) const;
  absl::Status check_silence(absl::Duration now) const;

  const std::optional<control::Welcome>& welcome() const { return welcome_; }  // the last one with a new place
  // Since when the coordinator can't be reached, if it can't and a plan was committed.
  std::optional<absl::Duration> away_since() const { return away_since_; }
  const absl::Status& last_failure() const { return last_failure_; }

 private:
  bool may_be_admitted_later(const absl::Status& status) const;

  const Terms terms_;
  ConnectionAttempts attempts_;
  absl::Duration started_;
  absl::Duration last_heard_;
  bool has_sent_join_ = false;  // on the last connection
  bool has_asked_ = false;     // Join was sent on an earlier one, so the coordinator may still hold this member's place
  absl::Status last_failure_;  // of the last attempt to connect
  std::optional<absl::Duration> away_since_;
  std::optional<control::Welcome> welcome_;
  std::string session_;
  uint64_t term_ = 0;  // highest term of any coordinator that has welcomed this member
};

}  // namespace gleaner::member
