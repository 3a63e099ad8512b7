// SendQueue chooses the partition that is pushed next: the most urgent ready partition whose owner is connected and has
// credit, if the window has room. Urgency is the order (tensor priority, position in the plan).
//
// Window. A partition is *on the way* from the time it is pushed until its owner answers it, or is known to have
// received it. The *window* bounds the bytes on the way over all owners. Pushes to this worker's own summer do not
// count, since they do not use its link. The window is a multiple of the largest push (Plan::push_bytes()).
//
// Credit. An owner's *credit* bounds the bytes on the way to that owner. It is twice the owner's share of a step's
// pushes, times the window, and at least two partitions. The factor is two because shares hold over the whole stream of
// gradients, but not over every few partitions.
//
// Arrival. A connection keeps the order of its frames. So an answer shows that all earlier pushes to that owner have
// arrived, too, and no longer use the link. Example: this worker has pushed tensor a, which other workers have not
// begun, and then pushes the more urgent tensor b. An owner's first result of b takes that owner's partitions of a off
// the window, although their results may come only after all of b.
//
// Stalls. Workers may begin tensors in different orders, so a full window may hold only partitions that other workers
// have not begun. That must not stop the job. So the window, and with it every credit, doubles each time that no result
// has arrived for stall_after, and returns to its size with the next result. Workers may also have filled one owner's
// credit with disjoint partitions, so that none of them completes, while other owners send results. So an owner's
// credit doubles each time that this owner has not answered for stall_after, and returns to its size with the owner's
// next result.
//
// Deferrals. An owner that defers a partition has dropped it, so the partition leaves the window. It becomes ready
// again after a pause (backoff), which doubles each time. A result shows that the owner has memory again. So each
// result makes one deferred partition of its owner ready immediately: the most urgent one, so that all workers try the
// same one. Partitions that were never deferred are pushed first, then those deferred longest ago. So all partitions
// are tried in turn, including those that the owner has begun to sum, even if more urgent or newer partitions are
// deferred again and again.
//
// Moves. A partition that moves to another owner while it is in flight becomes ready again, for the new owner.
//
// Cost. Each owner has a heap of ready partitions, and a tournament compares the first elements of the heaps of owners
// to which a push is possible. A push costs O(log partitions + log owners), however many owners are out of credit. A
// result costs the same, and O(deferred partitions of its owner); the first one after a stall also costs O(owners).
// After apply() nothing allocates memory.
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
  // `window_bytes`: the window's size; 0: plan::window_bytes() decides. `self`: the owner in this worker's own process.
  // `defer_retry`: the pause after a partition's first deferral. `stall_after`: 0 chooses twice the time that the
  // window takes on this worker's link, but at least 10 ms, and at most 50 ms or 1.5 times that time, whichever is
  // more. The factor is 1.5 because a result may take as long as the whole window even without a stall.
  SendQueue(uint64_t window_bytes, uint32_t self, absl::Duration stall_after, absl::Duration defer_retry);

  // Brings `plan` into force: the first plan, or a successor of the last one. The queue keeps the pointer until the
  // next apply(), which still reads the earlier plan.
  void apply(const plan::Plan* plan);

  // Sets the round-trip time to the farthest owner, on which the window depends. Ignores a change of less than an
  // eighth of the time that the window takes on this worker's link.
  void set_round_trip(absl::Duration round_trip);

  // A partition is named by its index in the plan.
  void make_ready(uint32_t partition);                 // the partition must be idle
  std::optional<uint32_t> next(absl::Duration now);    // returns the partition to push, which counts as sent
  bool defer(uint32_t partition, absl::Duration now);  // returns false, and does nothing, if it was not sent
  // The partition's result has arrived; it becomes idle, whatever its phase.
  void finish(uint32_t partition, absl::Duration now);

  void connect(uint32_t owner);
  void disconnect(uint32_t owner);  // partitions pushed to the owner without a result become ready again
  bool is_connected(uint32_t owner) const { return owners_[owner].connected; }

  // Makes deferred partitions ready whose pause is over, and lets a stalled window and stalled credits grow. Returns
  // whether the window or a credit grew.
  bool tick(absl::Duration now);

  // Makes all partitions idle. Connections stay.
  void clear();

  // Returns the bytes pushed and still without a result, whether they have arrived at their owner or not.
  uint64_t outstanding_bytes() const { return outstanding_bytes_; }
  // Returns the bytes on the way, without those to this worker's own summer.
  uint64_t window_used_bytes() const;
  uint64_t window_bytes() const { return window_bytes_ * growth_; }
  std::span<const uint32_t> owned_by(uint32_t owner) const { return owners_[owner].owned; }

 private:
  // kSent: the partition is on the way. kArrived: it has arrived at its owner, and has no answer.
  enum class Phase : uint8_t { kIdle, kReady, kSent, kArrived, kDeferred };
  static constexpr uint32_t kNone = UINT32_MAX;
  struct SendState {
    Phase phase = Phase::kIdle;
    uint32_t deferrals = 0;  // number of deferrals since the partition was idle
    // Number of the partition's last deferral since then, counted over all partitions; 0: none.
    uint64_t deferral_number = 0;
    uint32_t next_sent = kNone;  // the partition sent next to the same owner
    absl::Duration retry_at;
  };
  struct Owner {
    bool connected = false;
    uint64_t bytes_on_the_way = 0;
    uint64_t credit_bytes = 0;  // the credit before growth
    uint64_t growth = 1;        // a power of two, by which credit_bytes is multiplied
    // Time of the last answer, of the first push after no partition was on the way, or of the last growth.
    absl::Duration last_answer;
    uint32_t first_sent = kNone;  // head of the list of partitions on the way, in the order of sending
    uint32_t last_sent = kNone;
    std::vector<uint32_t> owned;  // all partitions of the owner, ready or not
    std::vector<Urgency> ready;   // a heap with the most urgent partition first
    std::vector<uint32_t> deferred;
  };

  std::vector<uint32_t> take_moved(const plan::Plan& later);
  void list_owned();
  void append_sent(Owner& owner, uint32_t partition);
  Urgency urgency(uint32_t partition) const;
  bool has_room(uint32_t owner, uint64_t bytes) const;
  bool has_credit(const Owner& owner) const;  // for its most urgent ready partition
  bool grow_stalled_owner(uint32_t owner, absl::Duration now);
  void set_window();                   // also sets stall_after_
  absl::Duration window_time() const;  // time that the window takes on this worker's link
  void set_credits();
  // Updates the owner's place in the tournament.
  void refresh(uint32_t owner);
  void refresh_all();
  void arrive(uint32_t partition);       // also marks all partitions sent to its owner before it
  void leave_phase(uint32_t partition);  // removes it from the lists and counts of its phase
  void retry_most_urgent(uint32_t owner);
  void retry_due(uint32_t owner, absl::Duration now);

  // As passed to the constructor; 0: the plan decides.
  const uint64_t asked_bytes_;
  uint64_t window_bytes_ = 0;  // before growth
  const uint32_t self_;
  const absl::Duration asked_stall_after_;
  absl::Duration stall_after_;
  absl::Duration round_trip_;
  const absl::Duration defer_retry_;
  const plan::Plan* plan_ = nullptr;
  std::vector<SendState> partitions_;
  std::vector<Owner> owners_;
  Tournament tournament_;
  uint64_t bytes_on_the_way_ = 0;
  uint64_t outstanding_bytes_ = 0;
  uint64_t last_deferral_number_ = 0;
  uint64_t growth_ = 1;  // a power of two, by which window_bytes_ is multiplied
  // Time of the last result or growth, or of the first push after no partition was on the way.
  absl::Duration last_progress_;
};

}  // namespace gleaner::session
