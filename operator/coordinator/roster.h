// The members of a job: a seat for each of the n * g ranks, then for each of the k CPU summers.
//
// Seat r < n * g is local rank r mod g of worker r / g; seat n * g + j is plan member n + j. The own index of a worker
// or summer (the number in the name of its pod) is r / g or j too, unless the options say otherwise. A summer's index
// can differ from j after set_summers() has closed gaps of summers that never came. Pure; belongs to a Core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "operator/coordinator/options.h"

namespace gleaner::coordinator {

using StreamId = uint64_t;  // of one member's connection; never used twice

enum class Role { kWorker, kSummer, kObserver };  // an observer has no seat

// What a member says of itself when it joins.
struct Identity {
  Role role = Role::kWorker;
  std::optional<uint32_t> index;
  uint32_t local_rank = 0;
  uint32_t local_size = 1;
  std::string address;  // of its summer; empty for local ranks above 0
  double bits_per_second = 0;
  std::vector<std::string> endpoints;  // as plan::Member has them
};

struct Seat {
  enum class State {
    kEmpty,
    kPresent,
    kAway,    // its stream broke; it may come back
    kLeft,    // it said good-bye, or is known to have ended well
    kVacant,  // of a summer that is gone: nobody is waited for
  };
  State state = State::kEmpty;
  bool takes_part() const { return state == State::kPresent || state == State::kAway; }
  StreamId stream = 0;
  Identity identity;
  absl::Duration last_heard;
  absl::Duration away_since;
  uint32_t acknowledged = 0;     // epoch
  uint32_t since = 0;            // a summer's: epoch of the first committed plan with it; 0: none yet
  uint32_t came_after = 0;       // a summer's: epoch of the last plan, proposed or not, that can't mean it
  double bits_per_second = 0;    // that somebody outside says it has; 0: nobody did
  bool leaving = false;          // a summer that wants to go, or shall: the next plan does without it; a rank that said
                                 // good-bye while the job was being taken up
  uint32_t leaves_at = 0;        // a rank's epoch then
  uint32_t committed = 0;        // epoch in force there when it came back
  std::string digest;            // of that plan
  uint32_t welcomed_member = 0;  // what its last Welcome said
  std::string welcomed_session;
};

// InvalidArgument: an address or a bandwidth that can't be right, of `who`.
absl::Status check(const Identity& identity, const std::string& who);

class Roster {
 public:
  explicit Roster(const Options& options);

  // The seat of whoever says this of itself. InvalidArgument: no such seat, or an identity that does not fit the job;
  // AlreadyExists: a summer without an index, and all have joined.
  absl::StatusOr<uint32_t> find(const Identity& identity) const;
  // The same for a member that comes back: its place in the plan says which summer it is. With `may_grow` there may be
  // more summers than are known here.
  absl::StatusOr<uint32_t> find_again(const Identity& identity, uint32_t member, bool may_grow);
  // The seat for a summer that comes while the job goes on: its own if it had one, else one that is vacant or new.
  uint32_t place_for(const Identity& identity);
  // Takes a seat that is empty or vacant, or whose member is away. AlreadyExists: somebody has it; InvalidArgument: an
  // identity that can't be right. Nothing changes then.
  absl::Status take(uint32_t seat, StreamId stream, const Identity& identity, absl::Duration now);
  // What becomes of a member that took its seat, or never did; its stream means nothing any more.
  void vacate(uint32_t seat, Seat::State state, absl::Duration now);

  // As Core::set_summers(); gives back the streams of those let go.
  std::vector<StreamId> set_summers(uint32_t summers);
  // As many as a plan has: seats at the end come or go.
  void fit_summers(uint32_t summers);

  std::optional<uint32_t> seat_of(StreamId stream) const;
  Seat& operator[](uint32_t seat) { return seats_[seat]; }
  const Seat& operator[](uint32_t seat) const { return seats_[seat]; }

  uint32_t size() const { return static_cast<uint32_t>(seats_.size()); }
  uint32_t ranks() const { return workers_ * local_ranks_; }
  bool is_summer(uint32_t seat) const { return seat >= ranks(); }
  uint32_t member_of(uint32_t seat) const;         // plan index
  uint32_t seat_of_member(uint32_t member) const;  // a worker's is that of its local rank 0
  uint32_t index_of(uint32_t seat) const;          // a worker's or summer's own number: what its pod is called by
  // The first seat of a worker, or a summer's.
  std::optional<uint32_t> seat_of_index(Role role, uint32_t index) const;

  uint32_t joined_ranks() const { return joined_ranks_; }  // present, or left
  uint32_t joined_summers() const { return joined_summers_; }
  uint32_t left_ranks() const { return left_ranks_; }
  uint32_t still_to_come() const { return to_come_; }  // as many as missing()
  bool complete() const { return still_to_come() == 0; }
  bool all_ranks_here() const { return joined_ranks_ == ranks(); }
  std::vector<uint32_t> missing() const;  // seats that are empty or whose members are away

  std::string name(uint32_t seat) const;     // "worker 2 (local rank 1)", "summer 0"
  std::string located(uint32_t seat) const;  // "summer 0 at 10.0.0.9:7000"
  // Seats for people: "worker 1, worker 3, summer 0", with an end for long lists.
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
  std::vector<uint32_t> summer_indices_;  // of summer seats
  absl::flat_hash_map<StreamId, uint32_t> by_stream_;
};

}  // namespace gleaner::coordinator
