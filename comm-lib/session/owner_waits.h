// OwnerWaits counts the results that a worker expects from each owner, and records since when it has waited for them.
// Pure; belongs to one thread. Allocates only in resize() and waiting_for().
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace gleaner::session {

class OwnerWaits {
 public:
  void resize(size_t owners) { owners_.resize(owners); }

  // Records that a partition of the owner is in flight.
  void on_start(uint32_t owner, absl::Duration now) {
    if (owners_[owner].missing++ == 0) owners_[owner].since = now;
  }
  // Records that a partition in flight was pushed to the owner for the first time.
  void on_push(uint32_t owner, absl::Duration now) {
    if (owners_[owner].pushed++ == 0) owners_[owner].since = now;
  }
  void on_defer(uint32_t owner, absl::Duration now) { owners_[owner].since = now; }
  void on_result(uint32_t owner, absl::Duration now) {
    owners_[owner].since = now;
    --owners_[owner].missing;
    --owners_[owner].pushed;
  }
  // Records that a partition in flight has moved. `pushed`: it was pushed, to `from` or to an earlier owner.
  void on_move(uint32_t from, uint32_t to, bool pushed, absl::Duration now) {
    --owners_[from].missing;
    owners_[from].pushed -= pushed ? 1 : 0;
    on_start(to, now);
    owners_[to].pushed += pushed ? 1 : 0;
  }
  // Records that no partition is in flight.
  void clear() { std::fill(owners_.begin(), owners_.end(), Owner{}); }

  // Returns the owners that owe results of partitions pushed to them, and the owners of partitions in flight for which
  // `is_connected` is false; the owner that has been silent for longest comes first.
  template <typename IsConnected>
  std::vector<uint32_t> waiting_for(const IsConnected& is_connected) const {
    std::vector<uint32_t> waiting;
    for (uint32_t i = 0; i < owners_.size(); ++i) {
      const bool unreachable = owners_[i].missing > 0 && !is_connected(i);
      if (owners_[i].pushed > 0 || unreachable) waiting.push_back(i);
    }
    std::stable_sort(waiting.begin(), waiting.end(),
                     [this](uint32_t a, uint32_t b) { return owners_[a].since < owners_[b].since; });
    return waiting;
  }

 private:
  struct Owner {
    uint32_t missing = 0;  // partitions in flight without a result
    uint32_t pushed = 0;   // number of these partitions that were pushed at least once
    // The time of the owner's last answer, or of the first request or push after the owner had no answer to send.
    absl::Duration since;
  };
  std::vector<Owner> owners_;
};

}  // namespace gleaner::session
