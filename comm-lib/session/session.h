// Session is the worker's protocol core: it takes requests for pieces and frames, and returns frames to send and pieces
// that are done. It does no I/O, reads no clock and starts no thread. docs/protocol.md specifies the frames.
//
// Terms. A *partition* is a slice of a tensor. A *piece* is a run of consecutive partitions of a tensor, or all of
// them, that this worker push_pulls together; it is in flight from start() until its Done. The *owner* of a partition
// is the member whose summer sums it. This worker pushes its *contribution* to the owner, and gets the sum, the
// *result*, back.
//
// The work is divided between four parts, which know nothing of each other:
// - Contributions holds the pieces in flight and pushes their contributions (contributions.h, send_queue.h);
// - Results counts results, keeps the last ones, hands them on to new owners and releases them (results.h);
// - Acknowledgements tells owners which results this worker has (acknowledgements.h);
// - ReleaseTimer decides when to ask owners which results every worker has (release_timer.h).
// Session decides which of them handles an event, and in which order. The rules:
//
// Sending. All partitions of a piece become ready at once. The most urgent ready partition leaves first, by the order
// (tensor priority, position in the plan). So gradients that the next forward pass needs first overtake the others. A
// *window* bounds the bytes on the way to all owners, and a *credit* those to each owner. So few bytes wait in kernel
// buffers, and an urgent partition that becomes ready late is sent soon. The session skips partitions of owners without
// credit.
//
// Repeats. The session pushes a contribution until its result has arrived: again on each new connection to the owner,
// and again after a deferral (kDefer). It copies a result to the piece's output only when the result is complete and
// checked. The contribution stays intact until then, so the output may be the same memory as the input.
//
// Acknowledgements. The session acknowledges results in batches. A batch leaves with the next push to the same owner,
// which saves a packet, or else with the next on_tick(). A new connection repeats the acknowledgement of each
// partition's latest result, because the last connection may have lost it.
//
// Plan changes. A plan may give partitions to other owners while they are in flight. After apply() the session ignores
// frames of the earlier owners about these partitions. It tells the new owners its step of each partition, pushes
// partitions in flight again, and sends results to owners that ask for them. An owner may follow a later plan than this
// worker, so the session accepts answers of later epochs.
//
// Accumulation. The owner of a tensor that accumulates answers with a running sum and its counts
// (summation-service/engine/running_sums.h). The session tells a new owner the version of the last such answer in place
// of a step.
//
// Memory. A piece is done when all its results have arrived and no frame refers to its input. The session keeps one
// handle to the input. The frames that it returns hold slices of the input, and a summer in the same process keeps such
// a slice until it has made the sum. The caller of start() must not keep a handle.
//
// Once warm, a partition costs no allocation, no lock and no system call (tests/unit counts them).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "comm-lib/exchange/exchange.h"
#include "comm-lib/session/acknowledgements.h"
#include "comm-lib/session/contributions.h"
#include "comm-lib/session/counters.h"
#include "comm-lib/session/owner_waits.h"
#include "comm-lib/session/release_timer.h"
#include "comm-lib/session/results.h"
#include "common/base/buffer.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"

namespace gleaner::session {

using exchange::Actions;
using exchange::Done;
using exchange::PieceRequest;

struct Options {
  uint64_t job = 0;            // wire::job_number() of the job's name
  uint32_t worker = 0;         // member index of this worker
  uint64_t window_bytes = 0;   // size of the window; 0: plan::window_bytes() decides
  absl::Duration stall_after;  // time without a result after which the window grows; 0: SendQueue decides
  // The pause after the first kDefer of a partition. It doubles with each further kDefer, up to 64 times this value.
  absl::Duration defer_retry = absl::Milliseconds(2);
};

class Session : public exchange::Exchange {
 public:
  // `pool` must outlive the session.
  Session(const Options& options, BufferPool* pool);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // exchange::Exchange. on_frame() handles a kResult, kDefer, kFetch, kRelease, kRefuse or kCommitted from an owner.
  // The window depends on the round-trip time.
  absl::Status apply(std::shared_ptr<const plan::Plan> plan, absl::Duration now, Actions& actions) override;
  absl::Status start(PieceRequest piece, absl::Duration now, Actions& actions) override;
  void on_connected(uint32_t owner, absl::Duration now, Actions& actions) override;
  void on_disconnected(uint32_t owner) override;
  absl::Status on_frame(uint32_t owner, const wire::Header& header, Buffer payload, absl::Duration now,
                        Actions& actions) override;
  void set_round_trip(absl::Duration round_trip) override { contributions_.set_round_trip(round_trip); }
  void on_tick(absl::Duration now, Actions& actions) override;
  void set_ending(std::span<const uint32_t> /*left*/) override { ending_ = true; }
  void fail(const absl::Status& status, Actions& actions) override;
  uint64_t step(uint32_t tensor, uint32_t partition) const override;
  // Returns whether no piece is in flight, every result is acknowledged, and no other worker may need a result that the
  // Session retains.
  bool idle() const override;
  // Returns the owners that owe results of partitions pushed to them, and the owners of partitions in flight that can't
  // be reached; the owner that has been silent for longest comes first.
  std::vector<uint32_t> waiting_for() const override;
  // Returns the counters. The next call updates them.
  const Counters& counters() const;
  // Returns the CPU summers that own partitions, and how long each has been late under the plan in force.
  std::vector<OwnerWaits::Late> late(absl::Duration now) { return contributions_.waits().late(now); }
  // Returns how long the workers' summers have been late under the plan in force (OwnerWaits).
  absl::Duration workers_late(absl::Duration now) { return contributions_.waits().workers_late(now); }

 private:
  // Frames from owners.
  absl::Status on_answer(uint32_t owner, const wire::Header& header, Buffer payload, absl::Duration now,
                         Actions& actions);
  absl::Status on_result(uint32_t owner, uint32_t index, const wire::Header& header, Buffer payload, absl::Duration now,
                         Actions& actions);
  absl::Status on_defer(uint32_t index, const wire::Header& header, absl::Duration now);
  void on_fetch(uint32_t owner, uint32_t index, const wire::Header& header, Actions& actions);

  void send_pushes(absl::Duration now, Actions& actions);
  void tell_progress(uint32_t owner, uint32_t since, Actions& actions);
  bool exists(uint32_t owner) const { return plan_ != nullptr && owner < plan_->members.size(); }

  const Identity identity_;
  std::shared_ptr<const plan::Plan> plan_;
  Contributions contributions_;
  Results results_;
  Acknowledgements acks_;
  ReleaseTimer release_timer_;
  bool ending_ = false;
  absl::Status failure_;       // set by fail()
  mutable Counters counters_;  // counters() computes some of them
};

}  // namespace gleaner::session
