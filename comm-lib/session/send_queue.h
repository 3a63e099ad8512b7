// Which partition leaves next: the most urgent one that is ready, whose owner is connected and has credit, as long as
// the window has room. Urgency is (tensor priority, position in the plan).
//
// Each owner has a heap of ready partitions, and a tournament compares the heads of owners that may send. Each change
// costs O(log partitions + log owners), however many owners are out of credit.
//
// The window bounds the bytes on the way: those sent, and neither answered nor known to be at their owner. Bytes to
// this worker's own summer don't count, since they take nothing of its link. The window is rounded up to whole
// partitions of the largest size. Each owner may hold twice its share of the plan's bytes of it, and always two
// partitions: twice, because shares hold over the whole stream and not over every few partitions.
//
// A connection keeps the order of its frames. So an answer shows that everything sent to this owner before has arrived,
// too: these partitions wait there for other workers, and take nothing of the link. This matters when an urgent tensor
// overtakes another one that only some workers have begun: their partitions of that tensor are not answered before the
// urgent one is through.
//
// A deferred partition leaves the window, since the owner dropped it. It is ready again after a pause that doubles each
// time, or when a result shows that the owner has memory again: one partition per result, the most urgent first, so
// that all workers try the same one. Partitions that were never deferred go first, then those whose last deferral is
// longest ago. So all partitions are tried in turn, also those that the owner has begun and waits for, even if urgent
// or newer partitions are deferred again and again.
//
// A partition that moves to another owner while it is in flight is ready again, for the new owner.
//
// After apply() nothing allocates.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "comm-lib/session/tournament.h"
#include "common/plan/plan.h"

namespace gleaner::session {

class SendQueue {
 public:
  // `window_bytes`: 0 for the plan's default. `stall_after`: 0 for twice what the window takes on this worker's link,
  // within 10 and 50 ms, or, where that is less, one and a half times: a result takes the whole window to come even
  // when all is well. `self`: the owner inside this worker's own process.
  SendQueue(uint64_t window_bytes, uint32_t self, absl::Duration stall_after, absl::Duration defer_retry);

  // The first plan, or a successor of the last, which is still there; it outlives its use here.
  void apply(const plan::Plan* plan);

  // Of the path to the farthest owner: the window follows it. What makes less than an eighth of it is let be.
  void set_round_trip(absl::Duration round_trip);

  // Partitions are named by their index in the plan.
  void make_ready(uint32_t partition);                  // was idle
  std::optional<uint32_t> next(absl::Duration now);     // marks it as sent
  bool defer(uint32_t partition, absl::Duration now);   // false: it is not sent, nothing changes
  void finish(uint32_t partition, absl::Duration now);  // its result is here; idle again, whatever it was

  void connect(uint32_t owner);
  void disconnect(uint32_t owner);  // what was sent to it is ready again
  bool is_connected(uint32_t owner) const { return owners_[owner].connected; }

  // Deferred partitions whose pause is over become ready. True when the window or an owner's part of it grew, because
  // nothing came for stall_after, from anybody or from that owner, and something ready waits for room.
  bool tick(absl::Duration now);

  // Everything is idle; connections stay.
  void clear();

  uint64_t outstanding_bytes() const { return outstanding_bytes_; }  // without a result, at their owner or not
  uint64_t window_used_bytes() const;
  uint64_t window_bytes() const { return window_bytes_ * growth_; }
  std::span<const uint32_t> owned_by(uint32_t owner) const { return owners_[owner].owned; }

 private:
  enum class Phase : uint8_t { kIdle, kReady, kSent, kArrived, kDeferred };
  static constexpr uint32_t kNone = UINT32_MAX;
  struct PartitionState {
    Phase phase = Phase::kIdle;
    uint32_t deferrals = 0;      // since it was idle
    uint64_t turn = 0;           // of its last deferral since then; 0: none
    uint32_t next_sent = kNone;  // to the same owner, after it
    absl::Duration retry_at;
  };
  struct Owner {
    bool connected = false;
    uint64_t bytes_on_the_way = 0;
    uint64_t limit_bytes = 0;     // of these, before growth
    uint64_t growth = 1;          // a power of two: so many times limit_bytes
    absl::Duration last_answer;   // or the first push after there was nothing on the way
    uint32_t first_sent = kNone;  // of a list of those on the way, in their order
    uint32_t last_sent = kNone;
    std::vector<uint32_t> owned;  // its partitions
    std::vector<Urgency> ready;   // a heap, the most urgent first
    std::vector<uint32_t> deferred;
  };

  std::vector<uint32_t> leave_owners(const plan::Plan& later);
  void list_owned();
  void append_sent(Owner& owner, uint32_t partition);
  Urgency urgency(uint32_t partition) const;
  bool has_room(uint32_t owner, uint64_t bytes) const;
  bool has_credit(const Owner& owner) const;  // for the first of those ready
  bool grow_stalled_owner(uint32_t owner, absl::Duration now);
  void set_window();                   // and stall_after
  absl::Duration window_time() const;  // that it takes on this worker's link
  void set_owner_limits();
  void refresh(uint32_t owner);
  void refresh_all();
  void arrive(uint32_t partition);       // it was answered: so it is at its owner, and what was sent before it
  void leave_phase(uint32_t partition);  // takes it out of where its phase has it
  void retry_most_urgent(uint32_t owner);
  void retry_due(uint32_t owner, absl::Duration now);

  const uint64_t asked_bytes_;
  uint64_t window_bytes_ = 0;  // in whole partitions of the largest size
  const uint32_t self_;
  const absl::Duration asked_stall_after_;
  absl::Duration stall_after_;
  absl::Duration round_trip_;
  const absl::Duration defer_retry_;
  const plan::Plan* plan_ = nullptr;
  std::vector<PartitionState> partitions_;
  std::vector<Owner> owners_;
  Tournament tournament_;
  uint64_t bytes_on_the_way_ = 0;
  uint64_t outstanding_bytes_ = 0;
  uint64_t last_turn_ = 0;
  uint64_t growth_ = 1;           // a power of two: the window is this many times window_bytes_
  absl::Duration last_progress_;  // the last result, or the first push after there was nothing outstanding
};

}  // namespace gleaner::session
