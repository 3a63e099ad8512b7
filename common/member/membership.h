// Membership is a member's side of the protocol with its coordinator. It decides how the member finds the coordinator,
// joins, follows plans and leaves, and how it goes on when the coordinator is lost. Client documents the functions of
// the same names.
//
// Membership is pure: it does no I/O and reads no clock. Calls come with the time. take() returns the actions, which
// the driver (ActionExecutor or the simulator) carries out in order. The driver keeps at most one connection. It opens
// one at Connect, and passes its messages on until the connection closes or Disconnect drops it. A Membership belongs
// to one thread.
//
// Membership knows the phase of the member, and passes each event to the parts that it concerns:
// - Joining (joining.h): finds the coordinator, joins, and finds the coordinator again.
// - FollowedPlans (followed_plans.h): the plan in force and the prepared one.
// - UnplannedTensors (unplanned_tensors.h): what the member declares.
// - Leaving (leaving.h): the request to leave, and how long it waits for the answer.
// - Outbox (outbox.h): messages that are sent later.
// Sums of planned tensors go on while the coordinator is lost. Tensors that no plan has yet wait, for at most
// plan_timeout; then the membership fails.
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
#include "common/member/event.h"
#include "common/member/followed_plans.h"
#include "common/member/joining.h"
#include "common/member/leaving.h"
#include "common/member/messages.h"
#include "common/member/outbox.h"
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
  Membership(const Terms& terms, std::function<double()> random);

  // Calls by the member: see Client's functions of these names.
  void begin(absl::Duration now);
  void declare(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations,
               absl::Duration now);
  void acknowledge(uint32_t epoch, absl::Duration now);
  void refuse(uint32_t epoch, const absl::Status& why, absl::Duration now);
  void report(Report report) { outbox_.report(std::move(report)); }
  void report_now(Report report, absl::Duration now);
  void begun(const std::string& tensor, uint64_t push_pulls, absl::Duration now);
  void push_pulls(uint32_t epoch, std::vector<uint64_t> counts, absl::Duration now);
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
  void on_heard(absl::Duration now) { joining_.on_heard(now); }  // any message of the coordinator
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
    kJoining,          // the coordinator has not admitted this member, or is lost
    kAdmitted,         // the coordinator has admitted this member
    kRegroup,          // the round has ended; the stream stays open until this member leaves
    kCoordinatorGone,  // the coordinator is lost, no other will replace it, and sums may still go on
    kOver,             // the last event was told, or this member has left
  };

  bool has_begun() const { return plans_.has_begun(); }
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
  void handle(const Withdraw& withdraw, absl::Duration now);
  void handle(const Failed& failed, absl::Duration now);
  void handle(const Regroup& regroup, absl::Duration now);
  void handle(const Finished& finished, absl::Duration now);
  void handle(const Goodbye& goodbye, absl::Duration now);
  // Other messages concern only the listener.
  template <typename Message>
  void handle(const Message& message, absl::Duration) {
    if (is_admitted()) tell(message);
  }

  void connect(absl::Duration now);
  void disconnect();
  void retry_later(absl::Duration now);
  void react(const Joining::Reaction& reaction, absl::Duration now);
  void on_lost(const absl::Status& why, absl::Duration now);
  void give_up_coordinator(const absl::Status& why);
  void tick_joining(absl::Duration now);
  void tick_admitted(bool is_idle, absl::Duration now);
  bool leaves_unanswered(absl::Duration now) const;

  void follow_others();
  void on_committed();
  void send(control::MemberMessage message, absl::Duration now);
  void send_leave(absl::Duration now);
  void fail_if_unplannable();
  // Fails if `status` is an error. Returns whether it is.
  bool fail_if(const absl::Status& status);
  void fail(const absl::Status& status);
  void end(const absl::Status& how);

  const Terms terms_;
  std::vector<Action> actions_;
  Phase phase_ = Phase::kJoining;
  absl::Duration last_tick_;
  Joining joining_;
  FollowedPlans plans_;
  UnplannedTensors unplanned_;
  Leaving leaving_;
  Outbox outbox_;
};

}  // namespace gleaner::member
