// A member's dealings with its coordinator: how it finds the coordinator, joins, follows plans and leaves, and what it
// does when the coordinator is lost. Client documents the functions of the same names.
//
// Pure: it does no I/O and reads no clock. Events come in with the time. take() returns the actions, which the driver
// (Dialogue, the simulator) carries out in order. The driver keeps at most one connection: Connect asks for one, and
// the driver passes on what comes from it until it is closed or Disconnect asks to drop it. One thread.
//
// A coordinator that can't be reached is tried again: until the timeout before the first plan is committed, and for as
// long as it takes afterwards. Meanwhile sums of planned tensors go on; tensors that no plan has yet wait.
// membership.cc has the member that has joined, membership_joining.cc the member that joins.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/member/client.h"
#include "common/plan/plan.h"

namespace gleaner::member {

// What a member goes on with while it looks for its coordinator again, as coordinator.proto has it.
struct Resume {
  std::string session;
  uint32_t committed = 0;
  uint32_t prepared = 0;
  std::string plan_digest;
  uint32_t member = 0;
  uint64_t term = 0;
};

// What a coordinator says that has shown that it is ours.
struct Admission {
  Welcome told;
  std::string session;
  uint64_t term = 0;
};

// What is said to the coordinator.
struct Heartbeat {};
struct Declaration {
  std::vector<plan::Tensor> tensors;
  std::vector<plan::Operation> operations;
};
struct Acknowledgement {
  uint32_t epoch = 0;
};
struct Refusal {
  uint32_t epoch = 0;
  absl::Status why;
};
struct Begun {
  std::string tensor;
  uint64_t push_pulls = 0;
};
struct Accusation {
  uint32_t member = 0;
  absl::Status why;
};
struct Leave {
  absl::Status status;
  uint32_t epoch = 0;
  bool again = false;
};
struct Recalled {
  std::shared_ptr<const plan::Plan> plan;
};
using Saying =
    std::variant<Heartbeat, Declaration, Acknowledgement, Refusal, Report, Begun, Accusation, Leave, Recalled>;

// What is to be done, besides saying something.
struct Connect {};     // a new connection; the one before is closed, or on its way to be
struct Disconnect {};  // what still comes from this one does not count
struct Introduce {     // the answer to a challenge
  std::optional<Resume> resume;
};
// Listener's callbacks of the same names.
struct Prepared {
  std::shared_ptr<const plan::Plan> plan;
};
struct Committed {
  uint32_t epoch = 0;
};
struct Failed {
  absl::Status status;
};
struct Regroup {
  absl::Status status;
};
struct Finished {};
struct CoordinatorLost {};
struct CoordinatorGone {  // and none will take its place
  absl::Status why;
};
struct CoordinatorFound {};
// Leave was heard, or nobody is there to hear it; `how` it went, for who looks at that.
struct Left {
  absl::Status how;
};
struct Stays {};  // a plan came first, by which this member may be needed once more
struct Note {     // for the log
  enum class Level { kDebug, kInfo, kWarning };
  Level level = Level::kInfo;
  std::string text;
  std::string reason;
};
using Action = std::variant<Saying, Connect, Disconnect, Introduce, Welcome, Prepared, Committed, Failed, Regroup,
                            Finished, CoordinatorLost, CoordinatorGone, CoordinatorFound, Left, Stays, Note>;

// How often and for how long it tries. Pauses between attempts are doubled from the first to the longest; each is drawn
// between half of it and all of it, so that members that lost the coordinator together do not come back together.
struct Pace {
  absl::Duration first_pause = absl::Milliseconds(100);  // until the job has begun
  absl::Duration longest_pause = absl::Seconds(1);
  absl::Duration first_pause_away = absl::Milliseconds(200);  // afterwards
  absl::Duration longest_pause_away = absl::Seconds(5);
  absl::Duration attempt = absl::Seconds(20);  // for an answer of any kind
  absl::Duration heartbeat = absl::Seconds(1);
  absl::Duration look = absl::Milliseconds(100);  // how often on_tick() is to be called while there is no connection
};

class Membership {
 public:
  struct Terms {
    bool is_summer = false;
    std::string coordinator;      // its address, for messages
    absl::Duration timeout;       // as in JoinOptions
    absl::Duration plan_timeout;  // as in JoinOptions
    Pace pace;
  };
  // `dice` gives numbers from 0 to 1.
  Membership(Terms terms, std::function<double()> dice) : terms_(std::move(terms)), dice_(std::move(dice)) {}

  // Its owner, as Client's functions of these names.
  void begin(absl::Duration now);
  void declare(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations,
               absl::Duration now);
  void acknowledge(uint32_t epoch, absl::Duration now);
  void refuse(uint32_t epoch, const absl::Status& why, absl::Duration now);
  void report(Report report);
  void begun(const std::string& tensor, uint64_t push_pulls, absl::Duration now);
  void fault(uint32_t member, const absl::Status& why, absl::Duration now);
  // An owner of partitions follows the plan of `epoch`. `by_rank`: the owner is a worker's summer, so a coordinator has
  // told its rank to commit that plan. While there is no coordinator, this member commits the plan that it has prepared
  // if an owner follows it. If a coordinator may still come, the owner must be a worker's summer: that coordinator asks
  // the ranks for the plan, and gives up a plan that CPU summers alone follow.
  void saw(uint32_t epoch, bool by_rank);
  void leave(const absl::Status& status, bool again, absl::Duration timeout, absl::Duration now);

  // The connection. Somebody is there, who wants to know who we are.
  void on_challenged(absl::Duration now);
  void on_welcome(const Admission& admission, absl::Duration now);
  // The connection could not be made or is of no use: nobody is there, or not our coordinator.
  void on_attempt_failed(const absl::Status& status, absl::Duration now);
  void on_closed(const absl::Status& status, absl::Duration now);
  // What a coordinator says that has let us in; from any other it is ignored.
  void on_heard(absl::Duration now) { last_heard_ = now; }  // anything
  void on_recalled(absl::Duration now);
  void on_prepare(std::shared_ptr<const plan::Plan> plan, absl::Duration now);
  void on_commit(uint32_t epoch);
  void on_failed(const absl::Status& status, bool again);
  void on_finished();
  void on_goodbye();

  // `is_idle`: nothing that was said is still to be written.
  void on_tick(bool is_idle, absl::Duration now);
  // on_tick() is called at least this often.
  absl::Duration patience() const;

  bool is_in() const { return phase_ == Phase::kIn; }
  bool expects_welcome() const;
  bool is_over() const { return phase_ == Phase::kOver; }
  std::vector<Action> take() { return std::exchange(actions_, {}); }

 private:
  enum class Phase {
    kConnecting,  // no word from the coordinator yet, or any more
    kJoining,     // it has our Join
    kIn,          // it let us in
    kRegroup,     // the round is over; the stream shows that we are still there, until we leave
    kAlone,       // after the first commit: it is lost, and none will take its place
    kOver,        // the last callback was made, or we left
  };

  bool has_begun() const { return committed_ != nullptr; }
  // Whoever leaves well may be needed until it is gone.
  bool follows_plans() const { return leave_status_.ok(); }
  void act(Action action) { actions_.push_back(std::move(action)); }
  void note(Note::Level level, absl::string_view text, absl::string_view reason);

  // Joining (membership_joining.cc).
  void connect(absl::Duration now);
  void retry_later(absl::Duration now);
  void disconnect();
  void on_lost(const absl::Status& why, absl::Duration now);
  void be_alone(const absl::Status& why);
  void come_in(const Admission& admission, absl::Duration now);
  void tick_connecting(absl::Duration now);
  bool is_late(absl::Duration now);
  bool may_be_let_in_later(const absl::Status& status) const;

  void follow_others();
  void commit();
  void say(Saying what, absl::Duration now);
  void say_declared(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations,
                    absl::Duration now);
  void say_leave(absl::Duration now);
  bool leaves_unheard(absl::Duration now) const;
  bool is_planned(const std::string& tensor) const;
  void note_declared(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations,
                     absl::Duration now);
  void check_alone();
  void fail(const absl::Status& status);
  void over(const absl::Status& how);

  const Terms terms_;
  const std::function<double()> dice_;
  std::vector<Action> actions_;
  Phase phase_ = Phase::kConnecting;
  absl::Duration started_;
  absl::Duration retry_at_;
  absl::Duration pause_;
  absl::Duration attempted_;  // when the connection was begun
  absl::Duration last_heard_;
  absl::Duration last_said_;
  absl::Duration last_tick_;
  bool is_connected_ = false;                 // or about to be
  bool has_asked_ = false;                    // on an earlier connection: the coordinator may still have us by that
  absl::Status last_failure_;                 // of connecting
  std::optional<absl::Duration> away_since_;  // after the first commit
  std::optional<Welcome> told_;               // what the listener was
  std::string session_;
  uint64_t term_ = 0;              // highest of any coordinator that has welcomed us
  std::vector<Saying> held_back_;  // until we are in
  std::shared_ptr<const plan::Plan> prepared_;
  std::shared_ptr<const plan::Plan> committed_;
  uint32_t seen_ = 0;                                  // highest epoch that an owner follows
  uint32_t seen_by_rank_ = 0;                          // the same of ranks' own summers
  absl::flat_hash_map<std::string, bool> declared_;    // by name; true: in a committed plan
  std::vector<plan::Tensor> unplanned_;                // those that are not, in order
  std::vector<plan::Operation> unplanned_operations_;  // of these
  std::vector<plan::Operation> unsaid_operations_;     // of those; they go together once all that was said is written
  absl::Duration unplanned_since_;
  std::optional<Report> report_;  // that is due
  Report last_report_;
  bool leaving_ = false;
  bool again_ = false;  // and come again
  absl::Duration leaving_since_;
  absl::Duration leave_timeout_;  // for a coordinator that is away
  absl::Status leave_status_;
};

}  // namespace gleaner::member
