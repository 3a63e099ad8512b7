// Rounds runs the rounds of a job. A round is the time with one set of workers, and has a Core of its own.
//
// A job with a fixed n has one round, and Rounds passes every event on to its Core. An elastic job goes through
// several:
// 1. A round ends when a worker is lost, or when all its workers have left and at least one of them wants to take part
//    in the next round (Leave with `again`), since other workers wait to join.
// 2. Every member that is still connected gets Regroup, leaves the round and joins again. A worker keeps its stream
//    until it has left. If it leaves without `again`, or its stream closes without a Leave, the next round does not
//    wait for that worker.
// 3. The next round begins with the members that wait (waiting_members.h). Its epochs are above all earlier ones.
//
// Rounds is pure, as Core is: events come with the time, and Rounds adds its reactions to Actions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/core/core.h"
#include "coordinator/core/waiting_members.h"

namespace gleaner::coordinator {

// The content of a member's Leave.
struct Leaving {
  uint32_t epoch = 0;  // of the plan that the member follows
  bool again = false;  // the worker wants to take part in the next round
};

// Totals of the rounds before the current core's round.
struct Past {
  // Rounds that have ended, except a round with which the job ended. Counts the current core's round once it has ended.
  uint32_t rounds = 0;
  uint64_t steps = 0;
  uint32_t rejected = 0;
  Changes changes;
  std::vector<StrategyChange> strategy_changes;  // the latest Planning::kChangesKept
  std::vector<EpochFigures> epochs;              // the latest EfficiencyMeter::kEpochsKept epochs that have steps
};

class Rounds {
 public:
  // Takes the arguments of Core(). `origin` is ignored for an elastic job, which no other coordinator can take up.
  Rounds(const Options& options, absl::Duration now, Origin origin);

  // Returns the core of the current round, or of the last one. The driver calls the core directly for messages of
  // members, except for the events below.
  Core& core() { return *core_; }
  const Core& core() const { return *core_; }
  // Returns the number of the round, from 1 on. 0: an elastic job waits for its first workers.
  uint32_t number() const { return number_; }

  void on_joined(StreamId stream, const Identity& identity, const std::optional<Resume>& resume, absl::Duration now,
                 Actions& actions);
  void on_left(StreamId stream, const absl::Status& status, const Leaving& leaving, absl::Duration now,
               Actions& actions);
  void on_disconnected(StreamId stream, const absl::Status& why, Actions& actions);
  void on_ended(Role role, uint32_t index, const absl::Status& how, absl::Duration now, Actions& actions);
  // See Core::on_exited(). Ignored for an elastic job, whose launcher calls on_ended().
  void on_exited(uint32_t worker, uint32_t local_rank, const RankExit& exit, Actions& actions);
  void on_tick(absl::Duration now, Actions& actions);
  void stop(const absl::Status& why, Actions& actions);

  // Ends a round or begins the next one, if the conditions are met. To be called after every event, before its actions
  // are carried out.
  void go_on(absl::Duration now, Actions& actions);

  // Returns the outcome of the job. core().outcome() is that of the round.
  const std::optional<absl::Status>& outcome() const { return is_elastic() ? outcome_ : core_->outcome().status(); }
  Phase phase() const;
  // Returns whether any rank has ever joined. For an elastic job: whether the first round has begun.
  bool any_rank_joined() const { return is_elastic() ? number_ > 0 : core_->outcome().any_rank_joined(); }
  Summary summary() const;
  const Past& past() const { return past_; }

 private:
  bool is_elastic() const { return options_.is_elastic(); }
  bool is_round_on() const { return number_ > 0 && !gathering_; }
  absl::Status admit(StreamId stream, const Identity& identity, Actions& actions);
  void end_round(absl::Duration now, Actions& actions);
  void send_regroup(Actions& actions);
  std::vector<uint32_t> note_returning_workers();
  void begin_round(WaitingMembers::NextRound next, absl::Duration now, Actions& actions);
  void send_newcomers(Actions& actions);
  void add_round_to_past();
  void end_job(const absl::Status& how, Actions& actions);

  const Options options_;
  WaitingMembers waiting_;
  std::unique_ptr<Core> core_;
  uint32_t number_ = 0;
  absl::Duration last_heartbeat_;  // to waiting members
  bool gathering_ = true;          // between rounds, and before the first one
  // Streams of workers that got Regroup and have not left, with the workers' indices.
  absl::flat_hash_map<StreamId, uint32_t> regrouping_;
  std::vector<uint32_t> returning_workers_;  // indices of workers that left this round with `again`
  StreamId last_closed_ = 0;                 // the stream that closed last; no message can be sent to it
  uint32_t newcomers_ = 0;                   // the last number of newcomers that was sent to the round's workers
  Past past_;
  std::optional<absl::Status> outcome_;
};

}  // namespace gleaner::coordinator
