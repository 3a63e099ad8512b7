// WaitingMembers holds the members that wait for the next round of an elastic job, and decides when that round begins.
// Pure; belongs to Rounds.
//
// The first round begins once as many workers have joined as the options name. After start_timeout it begins with the
// workers that have joined. The *expected* workers of a later round are those of the last round that are to come back.
// A later round begins once all of them have joined, or after regroup_timeout without the missing ones.
//
// No round begins with fewer than min_workers. If fewer have joined after start_timeout, the job fails. A worker that
// ended cleanly during a round counts towards min_workers, so that the remaining workers can end the training alone. A
// round takes at most max_workers: first those of the last round, in their order, then others by index.
//
// Once its workers have joined, a round also waits for the expected number of summers. The first round waits until
// start_timeout after the start. A later round waits for summer_timeout, but no longer than regroup_timeout after the
// end of the last round.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/roster/options.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

class WaitingMembers {
 public:
  struct Member {
    StreamId stream = 0;
    Identity identity;
  };
  // The members of a new round, in order. Every identity has an index.
  struct NextRound {
    std::vector<Member> workers, summers;
  };

  // Waits for the members of the first round, from `now` on.
  WaitingMembers(const Options& options, absl::Duration now);

  // Adds a member. A summer replaces a waiting summer of the same index, since the coordinator may not have noticed yet
  // that the earlier one has ended. Returns the stream of the summer that was replaced, if there is one.
  // InvalidArgument: the member's identity is invalid. Unavailable: a worker with this index waits already.
  absl::StatusOr<std::optional<StreamId>> add(StreamId stream, const Identity& identity);
  // Removes the member whose stream has closed, and no longer expects it. Returns whether a waiting member had this
  // stream.
  bool remove(StreamId stream);

  // Waits for the next round, after the last one ended at `now`. `workers`: the expected workers, in order. `summers`:
  // the expected number of summers. `done`: how many workers of the last round have ended cleanly.
  void begin_wait(std::vector<uint32_t> workers, uint32_t summers, uint32_t done, absl::Duration now);
  // No longer expects this worker.
  void expect_no_longer(uint32_t worker);
  // Counts this worker as one that has ended cleanly between two rounds, and no longer expects it.
  void on_worker_finished(uint32_t worker);

  // Returns and removes the members of the next round, if it is time for that round to begin.
  std::optional<NextRound> take(absl::Duration now);
  // Returns the warning that is due at `now`, if any. The warning says which members the next round waits for, and for
  // how long. While any member waits, the first warning is due kStallAfter after the wait began, and each later one
  // kMissingEvery after the one before.
  std::optional<std::string> warning(absl::Duration now);
  // Returns an error once no round can begin any more: start_timeout has passed and too few workers have joined.
  absl::Status check_workers(absl::Duration now) const;
  // Return and remove all waiting summers, or all waiting members.
  std::vector<Member> take_summers();
  std::vector<Member> take_all();

  std::vector<StreamId> streams() const;
  uint32_t workers() const { return static_cast<uint32_t>(workers_.size()); }

 private:
  std::optional<StreamId> add_summer(StreamId stream, const Identity& identity);
  bool is_expected(uint32_t worker) const;
  std::vector<uint32_t> missing() const;  // expected workers that have not joined, in order
  uint32_t workers_needed() const;
  std::string waits_for() const;

  const Options options_;
  absl::flat_hash_map<uint32_t, Member> workers_;  // by index
  std::vector<Member> summers_;
  std::vector<uint32_t> expected_;       // indices of the expected workers, in order
  uint32_t workers_of_first_round_ = 0;  // how many workers the first round waits for; 0 in later rounds
  uint32_t expected_summers_ = 0;
  uint32_t finished_workers_ = 0;
  absl::Duration wait_began_;
  std::optional<absl::Duration> workers_complete_since_;  // since when only summers are missing
  absl::Duration next_warning_;
};

}  // namespace gleaner::coordinator
