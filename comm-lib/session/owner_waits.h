// OwnerWaits counts the results that a worker expects from each owner, and records since when it has waited for them.
//
// OwnerWaits also measures how long results from CPU summers are *late*. A summer is late while it owes results of
// partitions pushed to it, although the other owners have answered. That is: no worker's summer owes a result, if
// workers own partitions, or at most half of all owners owe results. A worker waits for late results without a reason
// in the plan, which has all owners finish together, or because another worker pushes late. So a summer is slow only if
// it is late for every worker (coordinator/measure/slow_summers.h). If few partitions are in flight at a time, owners
// are late in turn; so the workers' summers together are measured, too: they are late while they owe results and no CPU
// summer does.
//
// Pure; belongs to one thread. Allocates only in resize(), waiting_for() and late().
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace gleaner::session {

class OwnerWaits {
 public:
  void resize(size_t owners) { owners_.resize(owners); }
  // Records that a plan comes into force, and measures lateness from now on. `owns`: by member, whether it owns
  // partitions. The first `workers` members are workers.
  void on_plan(uint32_t workers, const std::vector<bool>& owns, absl::Duration now);

  // Records that a partition of the owner is in flight.
  void on_start(uint32_t owner, absl::Duration now) {
    advance(now);
    if (owners_[owner].missing == 0) owners_[owner].since = now;
    add_missing(owner, 1);
  }
  // Records that a partition in flight was pushed to the owner for the first time.
  void on_push(uint32_t owner, absl::Duration now) {
    advance(now);
    if (owners_[owner].pushed == 0) owners_[owner].since = now;
    add_pushed(owner, 1);
  }
  void on_defer(uint32_t owner, absl::Duration now) { owners_[owner].since = now; }
  void on_result(uint32_t owner, absl::Duration now) {
    advance(now);
    owners_[owner].since = now;
    add_missing(owner, -1);
    add_pushed(owner, -1);
  }
  // Records that a partition in flight has moved. `pushed`: it was pushed, to `from` or to an earlier owner.
  void on_move(uint32_t from, uint32_t to, bool pushed, absl::Duration now) {
    advance(now);
    add_missing(from, -1);
    add_pushed(from, pushed ? -1 : 0);
    on_start(to, now);
    add_pushed(to, pushed ? 1 : 0);
  }
  // Records that no partition is in flight.
  void clear();

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

  struct Late {
    uint32_t owner = 0;
    absl::Duration time;  // since the last on_plan()
  };
  // Returns the CPU summers that own partitions, in order, and how long each has been late.
  std::vector<Late> late(absl::Duration now);
  // Returns how long the workers' summers have been late since the last on_plan().
  absl::Duration workers_late(absl::Duration now);

 private:
  struct Owner {
    uint32_t missing = 0;  // partitions in flight without a result
    uint32_t pushed = 0;   // number of these partitions that were pushed at least once
    bool owns = false;     // the plan gives it partitions
    // The time of the owner's last answer, or of the first piece or push after the owner had no answer to send.
    absl::Duration since;
    absl::Duration late;
    absl::Duration late_from;  // value of late_time_ when `pushed` rose from 0
  };

  bool is_any_late() const {
    return (owing_workers_ == 0 && do_workers_own_) || 2 * (owing_workers_ + owing_summers_) <= owners_with_share_;
  }
  // Adds the time since the last event to late_time_, if owing summers were late in that time, or to workers_late_.
  void advance(absl::Duration now) {
    const absl::Duration passed = std::max(now - advanced_to_, absl::ZeroDuration());
    if (owing_summers_ > 0 && is_any_late()) late_time_ += passed;
    if (owing_summers_ == 0 && owing_workers_ > 0) workers_late_ += passed;
    advanced_to_ = now;
  }
  void add_missing(uint32_t owner, int more) {
    const bool owed = owners_[owner].missing > 0;
    owners_[owner].missing += static_cast<uint32_t>(more);
    const int change = (owners_[owner].missing > 0 ? 1 : 0) - (owed ? 1 : 0);
    (owner < workers_ ? owing_workers_ : owing_summers_) += static_cast<uint32_t>(change);
  }
  void add_pushed(uint32_t owner, int more) {
    Owner& what = owners_[owner];
    const bool owed = what.pushed > 0;
    what.pushed += static_cast<uint32_t>(more);
    if (!owed && what.pushed > 0) what.late_from = late_time_;
    if (owed && what.pushed == 0) what.late += late_time_ - what.late_from;
  }

  std::vector<Owner> owners_;
  uint32_t workers_ = 0;
  uint32_t owners_with_share_ = 0;
  bool do_workers_own_ = false;
  uint32_t owing_workers_ = 0, owing_summers_ = 0;  // members with missing results
  absl::Duration advanced_to_;                      // time of the last event
  // The time in which every summer with `pushed` above 0 was late. A summer's own lateness is how much of this time
  // passes while it has `pushed` above 0; so an event costs the same for any number of summers.
  absl::Duration late_time_;
  absl::Duration workers_late_;
};

}  // namespace gleaner::session
