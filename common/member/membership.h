// Membership is a member's side of the protocol with its coordinator. It decides how the member finds the coordinator,
// joins, follows plans and leaves, and how it goes on when the coordinator is lost. Client documents the functions of
// the same names.
//
// Membership is pure: it does no I/O and reads no clock. Events come with the time. take() returns the actions, which
// the driver (ActionExecutor or the simulator) carries out in order. The driver keeps at most one connection. It opens
// one at Connect, and passes its messages on until the connection closes or Disconnect drops it. A Membership belongs
// to one thread.
//
// If the coordinator can't be reached, Membership tries again: before the first plan is committed until the timeout,
// and afterwards until the member leaves. Meanwhile sums of planned tensors go on. Tensors that no plan has yet wait,
// for at most plan_timeout; then the membership fails. Membership does not look for another coordinator if the lost one
// had admitted this member and its Welcome named no session: such a coordinator can't be replaced.
//
// membership.cc holds the member that has joined, membership_joining.cc the member that connects and joins.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/member/connection_attempts.h"
#include "common/member/event.h"
#include "common/member/followed_plans.h"
#include "common/member/messages.h"
#include "common/member/unplanned_tensors.h"
#include "common/plan/plan.h"

namespace gleaner::member {

// Actions of the driver besides sending a message and telling the listener of an event.
struct Connect {};     // opens a connection; the one before is closed or being closed
struct Disconnect {};  // drops the connection; the driver ignores events that still come from it
struct Introduce {     // answers the challenge by Join
  std::optional<Resume> resume;
};
// The membership has ended: the coordinator has answered Leave or has said that the job is finished, no coordinator has
// answered Leave in time, or the job has failed. `how`: OK, or the error.
struct Left {
  absl::Status how;
};
struct Stays {};  // a plan was committed before Leave was received, so this member may be needed once more
struct Note {     // a line for the log
  enum class Level { kDebug, kInfo, kWarning };
  Level level = Level::kInfo;
  std::string text;
  std::string reason;
};
using Action = std::variant<control::MemberMessage, Connect, Disconnect, Introduce, Event, Left, Stays, Note>;

class Membership {
 public:
  struct Terms {
    bool is_summer = false;
    std::string coordinator;      // its address, for error messages
    absl::Duration timeout;       // as in JoinOptions
    absl::Duration plan_timeout;  // as in JoinOptions
    Pace pace;
  };
  // `random` returns random numbers from 0 to 1.
  Membership(const Terms& terms, std::function<double()> random)
      : terms_(terms), attempts_(terms.pace, std::move(random)) {}

  // Calls by the member: see Client's functions of these names.
  void begin(absl::Duration now);
  void declare(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations,
               absl::Duration now);
  void acknowledge(uint32_t epoch, absl::Duration now);
  void refuse(uint32_t epoch, const absl::Status& why, absl::Duration now);
  void report(Report report);
  void begun(const std::string& tensor, uint64_t push_pulls, absl::Duration now);
  void fault(uint32_t member, uint32_t epoch, const absl::Status& why, absl::Duration now);
  // Records that an owner of partitions follows the plan of `epoch`. `by_rank`: the owner is a worker's summer, so a
  // coordinator has told its rank to commit that plan. While there is no coordinator, this member commits the plan that
  // it has prepared if an owner follows it. If a coordinator may still come, the owner must be a worker's summer: that
  // coordinator asks the ranks for the plan, and gives up a plan that only CPU summers follow.
  void on_owner_follows(uint32_t epoch, bool by_rank);
  void leave(const absl::Status& status, bool again, absl::Duration timeout, absl::Duration now);

  // Events of the connection. on_challenged(): the coordinator has sent a Challenge, which asks for a Join.
  void on_challenged(absl::Duration now);
  // `welcome`: of a coordinator that has proved that it knows the token.
  void on_welcome(const Welcome& welcome, absl::Duration now);
  // The attempt to join has failed: no connection was made, or the other end is not this job's coordinator.
  void on_attempt_failed(const absl::Status& status, absl::Duration now);
  void on_closed(const absl::Status& status, absl::Duration now);
  void on_heard(absl::Duration now) { last_heard_ = now; }  // any message of the coordinator
  // A message of the coordinator. Membership ignores it unless the coordinator has admitted this member.
  void on_message(const control::CoordinatorMessage& message, absl::Duration now);

  // `is_idle`: every message of this member has been written.
  void on_tick(bool is_idle, absl::Duration now);
  // on_tick() has to be called at least this often.
  absl::Duration tick_interval() const;

  bool is_admitted() const { return phase_ == Phase::kAdmitted; }
  bool expects_welcome() const;
  bool is_over() const { return phase_ == Phase::kOver; }
  std::vector<Action> take() { return std::exchange(actions_, {}); }

 private:
  enum class Phase {
    kConnecting,       // not connected, or no challenge has come yet
    kJoining,          // Join was sent
    kAdmitted,         // the coordinator has admitted this member
    kRegroup,          // the round has ended; the stream stays open until this member leaves
    kCoordinatorGone,  // the coordinator is lost, no other will replace it, and sums may still go on
    kOver,             // the last event was told, or this member has left
  };
  struct LeaveRequest {
    absl::Status status;
    bool again = false;  // the member joins the next round after leaving
    absl::Duration since;
    absl::Duration timeout;  // time to wait for a coordinator that can't be reached
  };

  bool has_begun() const { return plans_.has_begun(); }
  bool is_leaving() const { return leave_request_.has_value(); }
  // A member that leaves cleanly may be needed until it has left, so it follows plans until then.
  bool follows_plans() const { return !is_leaving() || leave_request_->status.ok(); }
  // Builds the action in its place: GCC 12 warns of a temporary Action that is moved.
  template <typename What>
  void act(What what) {
    actions_.emplace_back(std::in_place_type<What>, std::move(what));
  }
  template <typename What>
  void tell(What event) {
    actions_.emplace_back(std::in_place_type<Event>, std::move(event));
  }
  void note(Note::Level level, absl::string_view text, absl::string_view reason);

  void handle(const control::Heartbeat&, absl::Duration) {}
  void handle(const control::Recall& recall, absl::Duration now);
  void handle(const Prepare& prepare, absl::Duration now);
  void handle(const Commit& commit, absl::Duration now);
  void handle(const Failed& failed, absl::Duration now);
  void handle(const Regroup& regroup, absl::Duration now);
  void handle(const Finished& finished, absl::Duration now);
  void handle(const Goodbye& goodbye, absl::Duration now);
  // Other messages concern only the listener.
  template <typename Message>
  void handle(const Message& message, absl::Duration) {
    if (is_admitted()) tell(message);
  }

  // Joining (membership_joining.cc).
  void connect(absl::Duration now);
  void retry_later(absl::Duration now);
  void disconnect();
  void on_lost(const absl::Status& why, absl::Duration now);
  void give_up_coordinator(const absl::Status& why);
  void on_admitted(const Welcome& welcome, absl::Duration now);
  void tick_connecting(absl::Duration now);
  bool fail_if_late(absl::Duration now);
  bool may_be_admitted_later(const absl::Status& status) const;

  void follow_others();
  void commit();
  void send(control::MemberMessage message, absl::Duration now);
  void send_declared(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations,
                     absl::Duration now);
  void send_leave(absl::Duration now);
  bool leaves_unanswered(absl::Duration now) const;
  void fail_if_unplannable();
  void fail(const absl::Status& status);
  void end(const absl::Status& how);

  const Terms terms_;
  std::vector<Action> actions_;
  Phase phase_ = Phase::kConnecting;
  absl::Duration started_;
  absl::Duration last_heard_;
  absl::Duration last_sent_;
  absl::Duration last_tick_;
  ConnectionAttempts attempts_;
  bool has_asked_ = false;     // Join was sent before, so the coordinator may still hold this member's place
  absl::Status last_failure_;  // of the last attempt to connect
  std::optional<absl::Duration> away_since_;  // after the first commit: since when the coordinator can't be reached
  std::optional<Welcome> welcome_;            // the last one that the listener received
  std::string session_;
  uint64_t term_ = 0;                              // highest term of any coordinator that has welcomed this member
  std::vector<control::MemberMessage> held_back_;  // messages that are sent once this member is admitted
  FollowedPlans plans_;
  // Operations of unplanned tensors, declared before those operations, are sent together once every message is written.
  UnplannedTensors unplanned_;
  std::optional<Report> report_;  // to be sent with the next heartbeat
  Report last_report_;
  std::optional<LeaveRequest> leave_request_;
};

}  // namespace gleaner::member
