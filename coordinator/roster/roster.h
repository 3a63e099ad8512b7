// Roster holds the members of a job. It has a seat for each of the n * g ranks, then one for each of the k CPU summers.
//
// Seat r < n * g is local rank r mod g of worker r / g; seat n * g + j is plan member n + j. Each worker and summer
// also has an *index*, the number in the name of its pod. It is r / g or j, unless the options give another. The index
// of a summer can also differ from j after set_summers() has skipped summers that never joined. Pure; belongs to a
// Core.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/control/identity.h"
#include "common/plan/plan.h"
#include "coordinator/roster/options.h"

namespace gleaner::coordinator {

using StreamId = uint64_t;  // one connection of one member; a number is never used twice

using control::Identity;
using control::Resume;
using control::Role;

struct Seat {
  enum class State {
    kEmpty,  // no member has joined yet
    kPresent,
    kAway,    // the member's stream broke, and the member may come back
    kLeft,    // the member has left, or is known to have ended cleanly
    kVacant,  // a summer's seat without a member; the job does not wait for a summer in it
  };
  State state = State::kEmpty;
  // Epoch of the last plan that the member has, as far as this coordinator knows.
  uint32_t known_epoch() const { return std::max(acknowledged, committed); }
  bool takes_part() const { return state == State::kPresent || state == State::kAway; }
  StreamId stream = 0;
  Identity identity;
  absl::Duration last_heard;
  absl::Duration away_since;
  uint32_t acknowledged = 0;  // epoch of the last plan that the member acknowledged
  uint32_t since = 0;         // for a summer: epoch of the first committed plan with it; 0: none yet
  // For a summer: the highest epoch when it joined. Plans up to this epoch mean an earlier summer at the same place.
  uint32_t came_after = 0;
  double bits_per_second = 0;  // as set by set_bandwidth(); 0: not set
  // For a summer: it wants to leave or was released, so the next plan leaves it out. For a rank: it sent Leave during
  // re-attachment.
  bool leaving = false;
  bool on_standby = false;       // for a summer: the next plan gives it no partition (slow_summers.h)
  uint32_t leaves_at = 0;        // for such a rank: the epoch in its Leave
  uint32_t committed = 0;        // epoch of the plan that the member followed when it returned
  uint32_t prepared = 0;         // epoch of a later plan that it had prepared then; 0: none
  std::string digest;            // SHA-256 of that plan
  uint32_t welcomed_member = 0;  // in the last Welcome
  std::string welcomed_session;
};

// Returns OK, or InvalidArgument for an invalid address, endpoint or bandwidth. The message names the member as `who`.
absl::Status check(const Identity& identity, const std::string& who);

class Roster {
 public:
  explicit Roster(const Options& options);

  // Returns the seat of the member with this identity. InvalidArgument: there is no such seat, or the identity does not
  // fit the job. AlreadyExists: the summer has no index, and all summers have joined.
  absl::StatusOr<uint32_t> find(const Identity& identity) const;
  // Returns the seat of a member that returns as number `member` of the plan. For a summer that number, not the index,
  // decides the seat. With `may_grow` the plan may have more summers than this roster; seats are added for them.
  // Errors: as for find().
  absl::StatusOr<uint32_t> find_again(const Identity& identity, uint32_t member, bool may_grow);
  // Returns a seat for a summer that joins while the job goes on: the seat with the summer's index if there is one,
  // else a vacant or a new one.
  uint32_t place_for(const Identity& identity);
  // Assigns to a member a seat that is empty or vacant, or whose member is away. AlreadyExists: the seat is taken, or
  // its member has left. InvalidArgument: the identity is invalid. After an error the roster is unchanged.
  absl::Status take(uint32_t seat, StreamId stream, const Identity& identity, absl::Duration now);
  // Sets the state of a seat whose member is gone or never joined, and forgets the member's stream.
  void vacate(uint32_t seat, Seat::State state, absl::Duration now);

  // Sets a member's bandwidth (Seat::bits_per_second). NotFound: no such member; InvalidArgument: a bandwidth out of
  // range.
  absl::Status set_bandwidth(Role role, uint32_t index, double bits_per_second);
  // See Core::set_summers(). Returns the streams of surplus summers.
  std::vector<StreamId> set_summers(uint32_t summers);
  // Adds or removes seats at the end, so that there are `summers` seats for summers.
  void fit_summers(uint32_t summers);

  std::optional<uint32_t> seat_of(StreamId stream) const;
  Seat& operator[](uint32_t seat) { return seats_[seat]; }
  const Seat& operator[](uint32_t seat) const { return seats_[seat]; }

  uint32_t size() const { return static_cast<uint32_t>(seats_.size()); }
  uint32_t ranks() const { return workers_ * local_ranks_; }
  uint32_t local_ranks() const { return local_ranks_; }
  uint32_t members() const { return workers_ + summers(); }
  uint32_t summers() const { return size() - ranks(); }
  bool is_summer(uint32_t seat) const { return seat >= ranks(); }
  uint32_t member_of(uint32_t seat) const;         // plan index
  uint32_t seat_of_member(uint32_t member) const;  // of a worker: the seat of its local rank 0
  uint32_t index_of(uint32_t seat) const;          // of the worker or summer in this seat
  // Returns the first seat of the worker, or the seat of the summer, with this index.
  std::optional<uint32_t> seat_of_index(Role role, uint32_t index) const;

  // Returns whether `plan` includes the member in this seat. Every plan includes every rank. A plan includes a summer
  // if the plan has this very summer at its place, not an earlier summer that had the same place.
  bool is_part_of(const plan::Plan& plan, uint32_t seat) const;
  // Returns whether `plan` includes a summer that is lost. (The loss of a rank fails the job.)
  bool is_any_summer_lost(const plan::Plan& plan) const;

  uint32_t joined_ranks() const { return joined_ranks_; }  // present, or left
  uint32_t joined_summers() const { return joined_summers_; }
  uint32_t left_ranks() const { return left_ranks_; }
  uint32_t still_to_come() const { return to_come_; }  // the size of missing()
  std::vector<uint32_t> workers_that_left() const;     // member indices of workers whose local rank 0 has left
  bool complete() const { return still_to_come() == 0; }
  bool all_ranks_here() const { return joined_ranks_ == ranks(); }
  std::vector<uint32_t> missing() const;  // seats that are empty or whose member is away

  std::string name(uint32_t seat) const;     // "worker 2 (local rank 1)", "summer 0"
  std::string located(uint32_t seat) const;  // "summer 0 at 10.0.0.9:7000"
  // Lists seats for messages: "worker 1, worker 3, summer 0", cut after ten seats.
  std::string names(const std::vector<uint32_t>& seats) const;

 private:
  void change(uint32_t seat, Seat::State state);

  const uint32_t workers_;
  const uint32_t local_ranks_;
  uint32_t joined_ranks_ = 0;
  uint32_t joined_summers_ = 0;
  uint32_t left_ranks_ = 0;
  uint32_t to_come_ = 0;
  std::vector<Seat> seats_;
  std::vector<uint32_t> worker_indices_;
  std::vector<uint32_t> summer_indices_;  // by summer seat
  absl::flat_hash_map<StreamId, uint32_t> by_stream_;
};

}  // namespace gleaner::coordinator
