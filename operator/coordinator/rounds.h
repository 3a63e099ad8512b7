// A job's rounds: one Core each, for one set of workers.
//
// A job with a fixed n has one round, and this class passes everything on to its Core. An elastic job's round ends when
// a worker is lost, or when its workers leave to come again, because others wait to take part. All members are told so
// (Regroup), leave the round and join anew. The next round begins with the members in the lobby, under epochs above all
// earlier ones. A worker that is told keeps its stream until it has left; one whose stream closes without a Leave is
// not waited for.
//
// Pure, as Core: events come in with the time, and the reactions go into Actions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "operator/coordinator/core.h"
#include "operator/coordinator/lobby.h"

namespace gleaner::coordinator {

// What a member says as it leaves.
struct Leaving {
  uint32_t epoch = 0;  // in force there
  bool again = false;  // it wants to take part in the next round, too
};

// What rounds came to before the one of the core that is there now.
struct Past {
  uint32_t rounds = 0;  // that have ended
  uint64_t steps = 0;
  uint32_t rejected = 0;
  Changes changes;
  std::vector<EpochFigures> epochs;  // the latest Progress::kEpochsKept with steps
};

class Rounds {
 public:
  // As Core's. An elastic job can't be taken up by another coordinator: `origin` says nothing then.
  Rounds(const Options& options, absl::Duration now, Origin origin);

  // Of the round that goes on, or of the last one. What members of it say goes to it, but for the following.
  Core& core() { return *core_; }
  const Core& core() const { return *core_; }
  // From 1 on; 0: an elastic job's workers are still awaited.
  uint32_t number() const { return number_; }

  void on_joined(StreamId stream, const Identity& identity, const std::optional<Resume>& resume, absl::Duration now,
                 Actions& actions);
  void on_left(StreamId stream, const absl::Status& status, const Leaving& leaving, absl::Duration now,
               Actions& actions);
  void on_disconnected(StreamId stream, const absl::Status& why, Actions& actions);
  void on_ended(Role role, uint32_t index, const absl::Status& how, absl::Duration now, Actions& actions);
  // Of a job with a fixed n, as Core's; those of an elastic one say so with on_ended().
  void on_exited(uint32_t worker, uint32_t local_rank, const RankExit& exit, Actions& actions);
  void on_tick(absl::Duration now, Actions& actions);
  void stop(const absl::Status& why, Actions& actions);

  // To be called after every event, before its actions are carried out: ends a round, begins the next.
  void go_on(absl::Duration now, Actions& actions);

  // Of the job, where core() has that of the round.
  const std::optional<absl::Status>& outcome() const { return is_elastic() ? outcome_ : core_->outcome(); }
  Phase phase() const;
  // Whether any rank has ever joined, or waited with others for the first round.
  bool anybody_joined() const { return is_elastic() ? number_ > 0 : core_->anybody_joined(); }
  Summary summary() const;
  const Past& past() const { return past_; }

 private:
  bool is_elastic() const { return options_.is_elastic(); }
  bool is_round_on() const { return number_ > 0 && !gathering_; }
  absl::Status let_in(StreamId stream, const Identity& identity);
  void end_round(absl::Duration now, Actions& actions);
  void call_again(Actions& actions);
  std::vector<uint32_t> await_workers();
  void begin_round(Lobby::Party party, absl::Duration now, Actions& actions);
  void tell_newcomers(Actions& actions);
  void remember_core();
  void end_job(const absl::Status& how, Actions& actions);

  const Options options_;
  Lobby lobby_;
  std::unique_ptr<Core> core_;
  uint32_t number_ = 0;
  absl::Duration last_heartbeat_;                 // to those who wait
  bool gathering_ = true;                         // for the next round
  absl::flat_hash_map<StreamId, uint32_t> told_;  // to come again and still there, and who that is: workers by index
  std::vector<uint32_t> again_;                   // workers of the round that left it to come again
  StreamId gone_ = 0;                             // the last that was closed
  uint32_t newcomers_ = 0;                        // that the round's workers know of
  Past past_;
  std::optional<absl::Status> outcome_;
};

}  // namespace gleaner::coordinator
