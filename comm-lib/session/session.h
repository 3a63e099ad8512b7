// Session is the worker's protocol core: it takes requests for pieces and frames, and returns frames to send and pieces
// that are done. It does no I/O, reads no clock and starts no thread. docs/protocol.md specifies the frames.
//
// Terms. A *partition* is a slice of a tensor. A *piece* is a run of consecutive partitions of a tensor, or all of
// them, that this worker push_pulls together; it is in flight from start() until its Done. The *owner* of a partition
// is the member whose summer sums it. This worker pushes its *contribution* to the owner, and gets the sum, the
// *result*, back.
//
// Sending. All partitions of a piece become ready at once. The most urgent ready partition leaves first, by the order
// (tensor priority, position in the plan). So gradients that the next forward pass needs first overtake the others. A
// *window* bounds the bytes on the way to all owners, and a *credit* those to each owner. So few bytes wait in kernel
// buffers, and an urgent partition that becomes ready late is sent soon. The session skips partitions of owners without
// credit. See send_queue.h.
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
// frames of the earlier owners about these partitions. It tells the new owners its step of each partition, and pushes
// partitions in flight again. A new owner may lack a result that the earlier owner made and did not deliver to every
// worker. So the session retains each result until every worker has it (retention.h), and sends it to an owner that
// asks for it. An owner may follow a later plan than this worker, so the session accepts answers of later epochs.
//
// Accumulation. The owner of a tensor that accumulates answers with a running sum and its counts
// (summation-service/engine/running_sums.h). The session keeps the last answer of each such partition until the job
// ends, and tells a new owner the version of that answer in place of a step.
//
// Memory. A piece is done when all its results have arrived and no frame refers to its input. The session keeps one
// handle to the input. The frames that it returns hold slices of the input, and a summer in the same process keeps such
// a slice until it has made the sum. The caller of start() must not keep a handle.
//
// Once warm, a partition costs no allocation, no lock and no system call (tests/unit counts them).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "comm-lib/exchange/exchange.h"
#include "comm-lib/session/accumulated_answers.h"
#include "comm-lib/session/ack_batches.h"
#include "comm-lib/session/in_flight_pieces.h"
#include "comm-lib/session/owner_waits.h"
#include "comm-lib/session/release_timer.h"
#include "comm-lib/session/retention.h"
#include "comm-lib/session/send_queue.h"
#include "common/base/buffer.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"

namespace gleaner::session {

using exchange::Actions;
using exchange::Counters;
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
  void set_round_trip(absl::Duration round_trip) override { queue_.set_round_trip(round_trip); }
  void on_tick(absl::Duration now, Actions& actions) override;
  void set_ending() override { ending_ = true; }
  void fail(const absl::Status& status, Actions& actions) override;
  uint64_t step(uint32_t tensor, uint32_t partition) const override;
  // Returns whether no piece is in flight, every result is acknowledged, and no other worker may need a result that the
  // Session retains.
  bool idle() const override;
  // Returns the owners that owe results of partitions pushed to them, and the owners of partitions in flight that can't
  // be reached; the owner that has been silent for longest comes first.
  std::vector<uint32_t> waiting_for() const override;
  const Counters& counters() const override;
  // Returns the CPU summers that own partitions, and how long each has been late under the plan in force.
  std::vector<OwnerWaits::Late> late(absl::Duration now) { return waits_.late(now); }
  absl::Duration workers_late(absl::Duration now) { return waits_.workers_late(now); }  // see OwnerWaits

 private:
  struct PartitionState {
    uint64_t step = 0;     // number of results received so far: the step of its piece in flight, or of its next one
    bool missing = false;  // the partition's piece is in flight, and its result has not arrived
    bool pushed = false;   // the partition was pushed in this step, to this owner or an earlier one, and has no result
    // The partition's owner changed in this step: frames to an earlier owner may refer to the input.
    bool moved = false;
  };

  // Plans, pieces and pushes (session.cc).
  void move(const plan::Plan& later, absl::Duration now);
  void send_pushes(absl::Duration now, Actions& actions);
  void push(uint32_t partition, absl::Duration now, Actions& actions);
  bool owes_acks() const;
  bool accumulates(uint32_t index) const { return plan_->tensors[plan_->partitions[index].tensor].accumulates; }
  wire::Header header_of(wire::FrameType type, const Buffer& payload) const;

  // Frames from owners, and the replies to them (answers.cc).
  absl::Status check_answer(uint32_t index, const wire::Header& header) const;
  absl::Status on_result(uint32_t owner, uint32_t index, const wire::Header& header, Buffer payload, absl::Duration now,
                         Actions& actions);
  absl::Status on_defer(uint32_t owner, uint32_t index, const wire::Header& header, absl::Duration now);
  absl::Status on_release(uint32_t owner, const wire::Header& header, const Buffer& payload);
  void take_result(uint32_t owner, uint32_t index, const wire::Header& header, Buffer payload, absl::Duration now,
                   Actions& actions);
  void hand_on(uint32_t owner, uint32_t index, const wire::Header& wanted, Actions& actions);
  // Returns the step of this worker for the partition, as kAck tells it.
  wire::PartitionKey key_of(uint32_t index) const;
  void acknowledge(uint32_t owner, uint32_t index, Actions& actions);
  void tell_progress(uint32_t owner, uint32_t since, Actions& actions);
  void flush_acks(uint32_t owner, Actions& actions);
  void ask_for_release(uint32_t owner, Actions& actions);

  const Options options_;
  BufferPool* const pool_;
  std::shared_ptr<const plan::Plan> plan_;
  SendQueue queue_;
  AckBatches acks_;
  Retention retention_;
  AccumulatedAnswers accumulated_;
  InFlightPieces pieces_;
  OwnerWaits waits_;
  ReleaseTimer release_timer_;
  std::vector<PartitionState> partitions_;  // by index in the plan
  bool ending_ = false;
  absl::Status failure_;       // set by fail()
  mutable Counters counters_;  // counters() computes some of them
};

}  // namespace gleaner::session
