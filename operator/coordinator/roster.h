// Who takes part: a seat for each of the n * g ranks, then for each of the k CPU summers.
//
// Seat r < n * g is local rank r mod g of worker r / g; seat n * g + j is summer j. Pure; belongs to a Core.
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

enum class Role { kWorker, kSummer };

// What a member says of itself when it joins.
struct Identity {
  Role role = Role::kWorker;
  std::optional<uint32_t> index;
  uint32_t local_rank = 0;
  uint32_t local_size = 1;
  std::string address;  // of its summer; empty for local ranks above 0
  double bits_per_second = 0;
};

struct Seat {
  enum class State { kEmpty, kPresent, kLeft };
  State state = State::kEmpty;
  StreamId stream = 0;
  Identity identity;
  absl::Duration last_heard;
  uint32_t acknowledged = 0;  // epoch
};

class Roster {
 public:
  explicit Roster(const Options& options);

  // Takes a seat. AlreadyExists: somebody has it; InvalidArgument: no such seat, or an identity that does not fit the
  // job. Nothing changes then.
  absl::StatusOr<uint32_t> join(StreamId stream, const Identity& identity, absl::Duration now);

  std::optional<uint32_t> seat_of(StreamId stream) const;
  Seat& operator[](uint32_t seat) { return seats_[seat]; }
  const Seat& operator[](uint32_t seat) const { return seats_[seat]; }

  uint32_t size() const { return static_cast<uint32_t>(seats_.size()); }
  uint32_t ranks() const { return workers_ * local_ranks_; }
  bool is_summer(uint32_t seat) const { return seat >= ranks(); }
  uint32_t member_of(uint32_t seat) const;         // plan index
  uint32_t seat_of_member(uint32_t member) const;  // a worker's is that of its local rank 0
  uint32_t index_of(uint32_t seat) const;          // a worker's or summer's own number: what its pod is called by

  uint32_t joined_ranks() const { return joined_ranks_; }
  uint32_t joined_summers() const { return joined_summers_; }
  bool complete() const { return joined_ranks_ + joined_summers_ == size(); }

  std::string name(uint32_t seat) const;     // "worker 2 (local rank 1)", "summer 0"
  std::string located(uint32_t seat) const;  // "summer 0 at 10.0.0.9:7000"
  // Seats for people: "worker 1, worker 3, summer 0", with an end for long lists.
  std::string names(const std::vector<uint32_t>& seats) const;

 private:
  absl::StatusOr<uint32_t> find_seat(const Identity& identity) const;

  const uint32_t workers_;
  const uint32_t local_ranks_;
  uint32_t joined_ranks_ = 0;
  uint32_t joined_summers_ = 0;
  std::vector<Seat> seats_;
  absl::flat_hash_map<StreamId, uint32_t> by_stream_;
};

}  // namespace gleaner::coordinator
