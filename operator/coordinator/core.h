// The coordinator's protocol core: the members of a job, the tensors that all ranks agree on, and the plan in force.
//
// Pure: it does no I/O and reads no clock. Events come in with the time, and the reactions go into Actions, which the
// driver (Service, Server, tests, the simulator) carries out in order. One job, one thread.
//
// A job fails at the first error that the core can't repair: a member missing at the start, a lost worker, declarations
// that differ, a plan refused. Every member is told why, and outcome() has the reason.
//
// CPU summers come and go while the job runs. One that is lost is left out of the next plan, which every member has to
// follow; its partitions go to other owners, and no others move. A summer that comes, one that wants to leave, and a
// changed bandwidth are reasons for a plan that deals all owners anew. Such a plan only makes steps faster: if a member
// does not acknowledge it in time, it is given up for a while, and the job goes on as before. changes.cc has all of
// this.
//
// A core may take up a job that began under another coordinator (docs/protocol.md, Re-attachment). When a member comes
// with a plan in force, the core recovers: it waits until every rank is back, asks one of those with the highest epoch
// for its plan, brings members with an earlier plan up to it, and goes on. core.cc has the running job, core_members.cc
// members that join and leave, recovery.cc recovery, core_time.cc deadlines, and exits.cc what a launcher sees of the
// ranks' processes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/plan/plan.h"
#include "operator/coordinator/declarations.h"
#include "operator/coordinator/options.h"
#include "operator/coordinator/resume.h"
#include "operator/coordinator/roster.h"
#include "operator/coordinator/stalls.h"
#include "operator/coordinator/summary.h"

namespace gleaner::coordinator {

// What a member is told.
struct Welcome {
  uint32_t member = 0;
  uint32_t summers = 0;  // k, as far as it is known by now: the plan's counts
  std::string session;
  uint64_t term = 0;
};
struct Recall {};
struct Heartbeat {};
struct Prepare {
  std::shared_ptr<const plan::Plan> plan;
};
struct Commit {
  uint32_t epoch = 0;
};
// A worker has left well, and with that no sum can be made any more.
struct Ending {};
// The stream ends after each of these.
struct Rejected {
  absl::Status why;
};
// Of an elastic job's round: who is told shall come again.
struct Regroup {
  absl::Status why;
};
// Of an elastic job: so many workers wait for the next round.
struct Newcomers {
  uint32_t workers = 0;
};
// Some rank waits for a sum of this tensor: how far is this one with it?
struct Inquire {
  std::string tensor;
};
struct Failed {
  absl::Status status;
};
struct Finished {};
struct Goodbye {};
using Message = std::variant<Welcome, Recall, Heartbeat, Prepare, Commit, Ending, Rejected, Failed, Finished, Goodbye,
                             Regroup, Newcomers, Inquire>;

struct Send {
  StreamId stream = 0;
  Message message;
};

struct Actions {
  std::vector<Send> sends;
  std::vector<std::string> notes;     // for the log, info
  std::vector<std::string> warnings;  // for the log
};

// Where a core's job comes from.
struct Origin {
  // What Welcome tells members of a job that begins here, random: they show it to the next coordinator, which goes on
  // with it. Empty: no other can take up the job, and members that lose this one don't look for it.
  std::string session;
  bool may_resume = false;  // the job may have begun under another coordinator
  uint32_t epoch = 0;       // that the job had come to, by another core: the first plan's is above it
  uint64_t term = 0;        // of this coordinator; whoever takes its place has a higher one
};

// Of plans, since this core began.
struct Changes {
  uint32_t moved = 0;           // plans that dealt all owners anew
  uint32_t recovered = 0;       // plans without a summer that was lost
  uint32_t given_up = 0;        // plans that were not needed, and somebody did not follow in time
  uint32_t lost = 0;            // summers
  uint32_t came = 0;            // summers that came into a plan after the first
  uint32_t left = 0;            // summers that left well
  double recovery_seconds = 0;  // from a loss to the plan without the lost

  Changes& operator+=(const Changes& more) {
    moved += more.moved;
    recovered += more.recovered;
    given_up += more.given_up;
    lost += more.lost;
    came += more.came;
    left += more.left;
    recovery_seconds += more.recovery_seconds;
    return *this;
  }
};

// How the process of a rank ended, as its launcher saw it.
struct RankExit {
  bool well = false;    // with status 0
  std::string message;  // "exited with status 3", "was killed by signal 9 (SIGKILL)"
};

enum class Phase { kGathering, kRecovering, kRunning, kEnded };

class Core {
 public:
  // `options` must be valid. The start timeout counts from `now`.
  Core(const Options& options, absl::Duration now, Origin origin = {});

  // A member that proved who it is wants in, for the first time or once more.
  void on_joined(StreamId stream, const Identity& identity, const std::optional<Resume>& resume, absl::Duration now,
                 Actions& actions);
  // The answer to Recall.
  void on_recalled(StreamId stream, plan::Plan plan, absl::Duration now, Actions& actions);
  // Somebody who can see it says that this member (a worker with all its local ranks) has ended: OK: well, and it won't
  // come back; else it is lost. The job begins, or goes on, without a summer that has ended.
  void on_ended(Role role, uint32_t index, const absl::Status& how, absl::Duration now, Actions& actions);
  // A launcher says how the process of this rank ended. That is a loss, unless the rank has left well and its process
  // ended well; or it explains one. A command that does without Gleaner may end well: then no rank has joined.
  void on_exited(uint32_t worker, uint32_t local_rank, const RankExit& exit, Actions& actions);
  // Waits for this many summers and no more: those that are here stay, the others keep the smallest numbers. A summer
  // too many is let go. FailedPrecondition once there is a plan: from then on summers just come, and release_summer().
  absl::Status set_summers(uint32_t summers, absl::Duration now, Actions& actions);
  // This summer shall go: the next plan does without it, then it is told good-bye. NotFound: there is none.
  absl::Status release_summer(uint32_t index, absl::Duration now, Actions& actions);
  // What this member has now, each way, whatever it said itself. NotFound, InvalidArgument.
  absl::Status set_bandwidth(Role role, uint32_t index, double bits_per_second, absl::Duration now, Actions& actions);
  // From members that are in; anything from another stream is ignored, it lost its seat or the job is over.
  void on_heartbeat(StreamId stream, absl::Duration now);
  // Tensors, and what the first push_pulls of tensors declared now or before ask for.
  void on_declared(StreamId stream, const std::vector<plan::Tensor>& tensors,
                   const std::vector<plan::Operation>& operations, absl::Duration now, Actions& actions);
  void on_acknowledged(StreamId stream, uint32_t epoch, absl::Duration now, Actions& actions);
  void on_refused(StreamId stream, uint32_t epoch, const absl::Status& why, absl::Duration now, Actions& actions);
  void on_report(StreamId stream, const Report& report, absl::Duration now);
  // The push_pull that this rank has waited for longest, or none that takes long.
  void on_waiting(StreamId stream, std::optional<Waiting> waiting, absl::Duration now);
  // The answer to Inquire.
  void on_begun(StreamId stream, const std::string& tensor, uint64_t push_pulls, absl::Duration now);
  void on_fault(StreamId stream, uint32_t member, const absl::Status& why, absl::Duration now, Actions& actions);
  // `epoch`: of the plan in force there. A rank that left well under an earlier plan than the one that is committed
  // says so again: it may be needed once more.
  void on_left(StreamId stream, const absl::Status& status, uint32_t epoch, absl::Duration now, Actions& actions);
  // The stream is gone (Unavailable), or said something that does not belong there.
  void on_disconnected(StreamId stream, const absl::Status& why, Actions& actions);
  // To be called several times a second: deadlines and heartbeats.
  void on_tick(absl::Duration now, Actions& actions);
  // Somebody outside ends the job.
  void stop(const absl::Status& why, Actions& actions);

  // None while the job goes on; OK when every worker left well.
  const std::optional<absl::Status>& outcome() const { return outcome_; }
  // The rank or summer that the job failed by, where one is known: a seat of roster().
  std::optional<uint32_t> culprit() const { return culprit_; }
  std::string stall() const { return stalls_.lasting(); }  // which rank is late, now; empty: none
  // Whether any rank has ever joined.
  bool anybody_joined() const { return anybody_joined_; }
  // That rank or summer is gone or does not answer: without it the job could go on.
  bool failed_by_loss() const { return failed_by_loss_; }
  Phase phase() const;
  uint32_t highest_epoch() const { return highest_epoch_; }
  uint32_t proposed_epoch() const { return proposed_ == nullptr ? 0 : proposed_->epoch; }  // 0: none on its way
  uint32_t summers() const { return roster_.size() - roster_.ranks(); }
  const Roster& roster() const { return roster_; }
  bool is_part_of(const plan::Plan& plan, uint32_t seat) const;
  bool is_anybody_lost() const;                           // of the plan in force: the next one does without it
  const plan::Plan& plan() const { return *committed_; }  // in force; epoch 0: none yet
  uint32_t rejected() const { return rejected_; }
  const Changes& changes() const { return changes_; }
  Summary summary() const;

 private:
  // Members (core_members.cc).
  absl::Status let_in(StreamId stream, const Identity& identity, const std::string& session, absl::Duration now,
                      Actions& actions);
  absl::Status take_back(StreamId stream, const Identity& identity, const Resume& resume, absl::Duration now,
                         Actions& actions);
  absl::Status tell_outcome(StreamId stream, const std::optional<Resume>& resume, Actions& actions) const;
  void welcome(uint32_t seat, const std::string& session, Actions& actions);
  void begin_if_all_here(absl::Duration now, Actions& actions);
  void begin_recovery(const std::string& session, Actions& actions);
  absl::StatusOr<uint32_t> find_again(const Identity& identity, const Resume& resume);
  bool away(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions);
  void leave_well(uint32_t seat, absl::Duration now, Actions& actions);
  void after_leaving(absl::Duration now, Actions& actions);
  // Recovery (recovery.cc).
  void check_digest(uint32_t seat, Actions& actions);
  void seat_summers(const plan::Plan& plan, absl::Duration now, Actions& actions);
  bool fits(uint32_t seat, const plan::Plan& plan) const;
  void turn_away(uint32_t seat, const plan::Plan& plan, absl::Duration now, Actions& actions);
  void ask_for_plan(Actions& actions);
  void go_on_if_all_back(absl::Duration now, Actions& actions);
  void go_on_without_summers(absl::Duration now, Actions& actions);
  void catch_up(uint32_t seat, Actions& actions);

  std::optional<uint32_t> heard(StreamId stream, absl::Duration now);
  bool has_begun() const { return recovering_ || committed_->epoch > 0; }
  void fail(const absl::Status& status, std::optional<uint32_t> culprit, Actions& actions);
  void end(const absl::Status& status, std::optional<uint32_t> culprit, Actions& actions);
  void lost(uint32_t seat, absl::string_view why, Actions& actions);
  void fail_by_loss(const absl::Status& status, uint32_t seat, Actions& actions);
  // Losses whose cause a launcher may still tell (exits.cc).
  bool is_exit_awaited(uint32_t seat) const;
  void conclude(absl::Status status, uint32_t seat, Actions& actions);
  bool is_leaver_undecided() const;
  void check_exits_before_start(Actions& actions);
  void check_verdict(absl::Duration now, Actions& actions);
  bool has_failed() const { return outcome_.has_value() || verdict_.has_value(); }
  absl::Status why_failed() const { return outcome_.has_value() ? *outcome_ : verdict_->status; }
  void tell(uint32_t seat, Message message, Actions& actions) const;
  void tell_everyone(const Message& message, Actions& actions);
  // Changes (changes.cc).
  void remove_summer(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions);
  void let_go(uint32_t seat, Actions& actions);
  void summer_ended(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions);
  absl::Status let_in_late(StreamId stream, const Identity& identity, absl::Duration now, Actions& actions);
  std::vector<plan::Member> members_left() const;
  std::vector<plan::Member> members_wanted(uint32_t epoch) const;
  void give_up_change(absl::string_view why, absl::Duration now, Actions& actions);
  void withdraw_proposal();
  void after_commit(const plan::Plan& before, absl::Duration now, Actions& actions);
  void tell_part_of(const plan::Plan& plan, const Message& message, Actions& actions);

  void propose_first(absl::Duration now, Actions& actions);
  void propose_next(absl::Duration now, Actions& actions);
  enum class Why { kNeeded, kRecovery, kFaster };
  void propose(plan::Plan plan, Why why, absl::Duration now, Actions& actions);
  void declare(uint32_t seat, const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations,
               absl::Duration now, Actions& actions);
  void commit_if_acknowledged(absl::Duration now, Actions& actions);
  void finish_if_all_left(Actions& actions);
  void check_start(absl::Duration now, Actions& actions);
  void warn_of_missing(absl::Duration now, Actions& actions);
  void check_silence(absl::Duration now, Actions& actions);
  void check_declarations(absl::Duration now, Actions& actions);
  void check_stalls(absl::Duration now, Actions& actions);
  void check_leavers(absl::Duration now, Actions& actions);
  bool are_waiting(const std::vector<uint32_t>& ranks, absl::Duration now) const;
  std::optional<uint32_t> neighbour_that_left(uint32_t seat) const;
  std::string finished_early(uint32_t left, uint32_t waiting) const;
  std::string steps_of(uint32_t seat) const;
  bool is_awaited(uint32_t seat) const;  // to acknowledge the proposed plan
  bool is_anybody_awaited();
  std::vector<uint32_t> unacknowledged() const;
  std::optional<double> known_bandwidth_of(uint32_t member) const;
  double stand_in_bandwidth() const;

  const Options options_;
  const Origin origin_;
  const absl::Duration started_;
  absl::Duration last_tick_;
  absl::Duration last_heartbeat_;
  Roster roster_;
  Declarations declarations_;
  std::string session_;
  bool recovering_ = false;
  std::optional<uint32_t> asked_;               // for its plan: a seat
  std::shared_ptr<const plan::Plan> recalled_;  // the most advanced plan that was told; while recovering
  struct Declared {
    uint32_t seat = 0;
    std::vector<plan::Tensor> tensors;
    std::vector<plan::Operation> operations;
  };
  std::vector<Declared> declared_early_;     // while recovering
  std::map<uint32_t, std::string> accused_;  // summers' members, of a plan that may not be told yet; while recovering
  uint32_t highest_epoch_ = 0;               // that any member has heard of: the next plan's is above it
  std::shared_ptr<const plan::Plan> committed_ = std::make_shared<plan::Plan>();
  std::shared_ptr<const plan::Plan> proposed_;  // null: none on its way
  absl::Duration proposed_at_;
  Why proposed_why_ = Why::kNeeded;
  uint32_t look_first_ = 0;           // seat, for is_anybody_awaited()
  std::vector<plan::Tensor> agreed_;  // in no committed plan yet
  size_t proposed_tensors_ = 0;       // of these, in the proposed plan
  bool uneven_ = false;               // owners were dealt for other members than these
  bool ending_ = false;               // a worker left well
  absl::Duration next_change_;        // no sooner, after one was given up
  absl::Duration change_pause_;
  std::optional<absl::Duration> ranks_back_;  // while recovering: since when only summers are missing
  Changes changes_;
  std::optional<absl::Duration> lost_at_;  // a summer of the plan in force, first
  absl::Duration next_missing_warning_;
  absl::Duration next_declaration_warning_;
  Stalls stalls_;
  std::optional<absl::Duration> ending_since_;
  Progress progress_;
  uint32_t rejected_ = 0;
  std::optional<absl::Status> outcome_;
  std::optional<uint32_t> culprit_;
  bool failed_by_loss_ = false;
  bool anybody_joined_ = false;
  // The first loss, while a launcher may still say how the process ended.
  struct Verdict {
    absl::Status status;
    uint32_t seat = 0;
    absl::Duration since;
    bool explained = false;  // `status` says how the process ended
  };
  std::optional<Verdict> verdict_;
  std::map<uint32_t, RankExit> exits_;  // of ranks' processes, by seat, as a launcher says
  std::set<uint32_t> left_well_;        // ranks
};

}  // namespace gleaner::coordinator
