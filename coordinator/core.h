// The coordinator's protocol core. A Core keeps the members of one job, the tensors that all ranks have declared, and
// the plan in force.
//
// Core is pure: it does no I/O and reads no clock. The driver (Rounds and Job, a test or the simulator) calls it with
// each event and the time, and then carries out the Actions in order. A Core belongs to one thread.
//
// Core receives the events, calls those of its parts that an event concerns, and passes their findings on to the
// others:
// - Roster (roster.h): the members and their seats.
// - Admission (admission.h): which members the job admits, and to which seats.
// - Declarations (declarations.h): the tensors that ranks declare.
// - Planning (planning.h): the plan in force, the proposed plan, and the reasons for the next one.
// - Reattachment (reattachment.h): takes up a job that began under another coordinator. It begins when a member
//   with a plan in force returns. Missing summers count as lost once they are overdue.
// - Liveness (liveness.h), StartTimeout (start_timeout.h), DeadlockDetector (deadlocks.h): time limits.
// - SlowSummers (slow_summers.h): keeps summers that make steps longer without a share.
// - Outcome (outcome.h): how the job ends, and which member is the cause.
//
// A member that does not acknowledge a needed or recovery plan (planner.h) within the deadline is lost. If a rank
// refuses such a plan, the job fails. A summer that refuses any plan is lost. If a rank refuses an optional plan, or a
// member does not acknowledge it within change_timeout, the plan is withdrawn, and the plan in force stays.
//
// Failure: the job fails at the first error that Core cannot repair. Such errors are a member that is missing at
// start_timeout, a lost worker, declarations that differ, and a needed or recovery plan that a rank refuses. Core sends
// the reason to every member, and outcome() returns it. The loss of a CPU summer does not fail the job.
//
// A member *leaves cleanly* when it sends Leave with an OK status.
//
// core.cc holds the running job, core_members.cc members that join, return and end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/plan/plan.h"
#include "coordinator/admission.h"
#include "coordinator/deadlocks.h"
#include "coordinator/declarations.h"
#include "coordinator/efficiency_meter.h"
#include "coordinator/liveness.h"
#include "coordinator/messages.h"
#include "coordinator/options.h"
#include "coordinator/outcome.h"
#include "coordinator/phase.h"
#include "coordinator/planning.h"
#include "coordinator/reattachment.h"
#include "coordinator/roster.h"
#include "coordinator/slow_summers.h"
#include "coordinator/start_timeout.h"
#include "coordinator/summary.h"

namespace gleaner::coordinator {

class Core {
 public:
  // `options` must be valid. The start timeout counts from `now`.
  Core(const Options& options, absl::Duration now, Origin origin = {});

  // An authenticated member wants to join. `resume`: the state that a returning member shows.
  void on_joined(StreamId stream, const Identity& identity, const std::optional<Resume>& resume, absl::Duration now,
                 Actions& actions);
  // The answer to Recall: the plan that the member follows.
  void on_recalled(StreamId stream, plan::Plan plan, absl::Duration now, Actions& actions);
  // The operator or a launcher reports that this member (a worker with all its local ranks) has ended. OK: it ended
  // cleanly and does not come back; otherwise it is lost. A worker that ended before the job had begun is lost in both
  // cases. The job begins, or goes on, without a summer that has ended.
  void on_ended(Role role, uint32_t index, const absl::Status& how, absl::Duration now, Actions& actions);
  // A launcher reports how the process of this rank ended (outcome.h). The exit counts as a loss, unless the rank had
  // left cleanly and exited with status 0. If the rank is known to be lost, the exit explains why. After a loss, exits
  // of other workers' ranks count as its consequences.
  void on_exited(uint32_t worker, uint32_t local_rank, const RankExit& exit, Actions& actions);
  // Sets how many summers the job waits for before it begins. Summers that have joined stay, those with the smallest
  // indices first; surplus ones are rejected. The remaining seats get the smallest free indices. InvalidArgument: too
  // many members. FailedPrecondition once a plan is proposed: from then on summers may join at any time, and
  // release_summer() removes one.
  absl::Status set_summers(uint32_t summers, absl::Duration now, Actions& actions);
  // Releases this summer: the next plan leaves it out, and then the summer gets Goodbye. NotFound: no such summer takes
  // part, or the job has not begun.
  absl::Status release_summer(uint32_t index, absl::Duration now, Actions& actions);
  // Sets a member's bandwidth, each way. It overrides the options and the member's own figure. NotFound: no such
  // member; InvalidArgument: a bandwidth out of range.
  absl::Status set_bandwidth(Role role, uint32_t index, double bits_per_second, absl::Duration now, Actions& actions);
  // Messages from members. Core ignores a message from a stream that has no seat, and every message once the job has
  // ended.
  void on_heartbeat(StreamId stream, absl::Duration now);
  // `tensors` are newly declared. `operations` are those of the first push_pulls of tensors declared in this message or
  // earlier.
  void on_declared(StreamId stream, const std::vector<plan::Tensor>& tensors,
                   const std::vector<plan::Operation>& operations, absl::Duration now, Actions& actions);
  void on_acknowledged(StreamId stream, uint32_t epoch, absl::Duration now, Actions& actions);
  // Ignored if the plan of `epoch` was withdrawn meanwhile.
  void on_refused(StreamId stream, uint32_t epoch, const absl::Status& why, absl::Duration now, Actions& actions);
  void on_report(StreamId stream, const Report& report, absl::Duration now, Actions& actions);
  // `waiting`: the oldest push_pull that this rank waits for; none while no push_pull takes long.
  void on_waiting(StreamId stream, std::optional<OldestPushPull> waiting, absl::Duration now);
  // The answer to Inquire.
  void on_begun(StreamId stream, const std::string& tensor, uint64_t push_pulls, absl::Duration now);
  // The sender can't go on with `member`, an index in the plan of `epoch`, which the sender follows. Core removes a CPU
  // summer, and fails the job otherwise. An index beyond the plan says that the sender itself can't go on. Core ignores
  // the report if another summer has joined at that index since. Epoch 0: the sender does not know the epoch.
  void on_fault(StreamId stream, uint32_t member, uint32_t epoch, const absl::Status& why, absl::Duration now,
                Actions& actions);
  // The member asks to leave. `epoch`: of the plan that the member follows. Core ignores a clean Leave of a rank that
  // follows an earlier plan than the committed one: the rank may be needed under the committed plan, and sends Leave
  // again when it follows that plan.
  void on_left(StreamId stream, const absl::Status& status, uint32_t epoch, absl::Duration now, Actions& actions);
  // The stream broke (Unavailable), or the member violated the protocol (any other code).
  void on_disconnected(StreamId stream, const absl::Status& why, Actions& actions);
  // Checks deadlines and sends heartbeats. To be called several times a second.
  void on_tick(absl::Duration now, Actions& actions);
  // Ends the job with an error.
  void stop(const absl::Status& why, Actions& actions);

  // None while the job goes on; OK once every rank has left cleanly.
  const std::optional<absl::Status>& outcome() const { return outcome_.status(); }
  // The seat of the rank or summer that made the job fail, if one is known.
  std::optional<uint32_t> culprit() const { return outcome_.culprit(); }
  // Describes a stall that lasts (stalls.h); empty: there is none.
  std::string stall() const { return deadlocks_.stall(); }
  const SlowSummers& slow_summers() const { return slow_summers_; }
  // Returns whether any rank has ever joined.
  bool any_rank_joined() const { return outcome_.any_rank_joined(); }
  // Returns whether the job failed because the culprit is lost or does not answer. An elastic job goes on without it.
  bool failed_by_loss() const { return outcome_.is_loss(); }
  Phase phase() const;
  uint32_t highest_epoch() const { return planning_.agreement().highest_epoch(); }
  uint32_t proposed_epoch() const;  // 0: no plan is proposed
  const Roster& roster() const { return roster_; }
  bool has_lost_summer() const { return roster_.is_any_summer_lost(plan()); }  // whether the plan in force has one
  const plan::Plan& plan() const { return planning_.in_force(); }              // epoch 0: no plan has been committed
  uint32_t rejected() const { return rejected_; }
  const Changes& changes() const { return planning_.changes(); }
  Summary summary() const;

 private:
  // Members that join, return and end (core_members.cc).
  absl::Status admit(StreamId stream, const Identity& identity, const std::string& session, absl::Duration now,
                     Actions& actions);
  absl::Status admit_late(StreamId stream, const Identity& identity, absl::Duration now, Actions& actions);
  absl::Status readmit(StreamId stream, const Identity& identity, const Resume& resume, absl::Duration now,
                       Actions& actions);
  void reject_out_of_reach(const Identity& newcomer, absl::Duration now, Actions& actions);
  void begin_if_all_joined(absl::Duration now, Actions& actions);
  void reject_returning_summer(uint32_t seat, const plan::Plan& plan, absl::Duration now, Actions& actions);
  void begin_reattachment(const std::string& session, Actions& actions);
  void check_digest(uint32_t seat, Actions& actions);
  void finish_reattachment_if_complete(absl::Duration now, Actions& actions);
  bool mark_away_if_it_may_return(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions);
  void on_summer_ended(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions);
  // The running job (core.cc).
  std::optional<uint32_t> seat_of_sender(StreamId stream, absl::Duration now);
  std::optional<uint32_t> rank_of_sender(StreamId stream, absl::Duration now);
  bool has_begun() const { return reattachment_.is_under_way() || planning_.has_plan(); }
  bool is_ending() const { return first_leave_at_.has_value(); }
  void fail(const Failure& failure, Actions& actions);
  void fail_if(const std::optional<Failure>& failure, Actions& actions);
  void lose(uint32_t seat, absl::string_view why, Actions& actions);
  void announce_failure(bool has_ended, Actions& actions);
  void on_summer_left(uint32_t seat, const absl::Status& status, absl::Duration now, Actions& actions);
  void on_left_in_error(uint32_t seat, const absl::Status& status, Actions& actions);
  void leave_cleanly(uint32_t seat, absl::Duration now, Actions& actions);
  void after_leaving(absl::Duration now, Actions& actions);
  void remove_summer(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions);
  void remove_unreachable_summer(uint32_t seat, uint32_t epoch, absl::string_view why, absl::Duration now,
                                 Actions& actions);
  void release_unless_in_plan(uint32_t seat, absl::Duration now, Actions& actions);
  void declare(uint32_t seat, const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations,
               absl::Duration now, Actions& actions);
  void propose_next(absl::Duration now, Actions& actions);
  void commit_if_acknowledged(absl::Duration now, Actions& actions);
  void check_start(absl::Duration now, Actions& actions);
  void check_proposal(absl::Duration now, Actions& actions);
  void check_liveness(absl::Duration now, Actions& actions);
  void check_declarations(absl::Duration now, Actions& actions);
  void check_waiting_ranks(absl::Duration now, Actions& actions);
  void give_up_overdue_summers(absl::Duration now, Actions& actions);

  const Options options_;
  Roster roster_;
  Declarations declarations_;
  EfficiencyMeter efficiency_;
  DeadlockDetector deadlocks_;
  Planning planning_;
  Reattachment reattachment_;
  Admission admission_;
  Outcome outcome_;
  Liveness liveness_;
  StartTimeout start_timeout_;
  SlowSummers slow_summers_;
  std::optional<absl::Duration> first_leave_at_;  // when the first rank left, or the first worker ended, cleanly
  uint32_t rejected_ = 0;
};

}  // namespace gleaner::coordinator
