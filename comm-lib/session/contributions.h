// Contributions handles the contributions of this worker to the partitions of its pieces: from start() on it pushes
// each to its owner, until the partition's result has arrived.
//
// The send queue (send_queue.h) chooses the partition that is pushed next. A contribution is pushed again on each new
// connection to its owner, after a deferral, and after its partition has moved to another owner. A repeated push
// carries a copy of the input: the owner may have the first copy, and its result may overwrite an input that is also
// the output while the repeated push still waits to be sent.
//
// A partition of a piece in flight is *awaited* once it was pushed and until its result arrives. Only then can an owner
// answer it.
//
// Partitions are named by their indexes in the plan. Pure; belongs to one thread. Once warm, a partition costs no
// allocation, except for a delayed result (in_flight_pieces.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "comm-lib/exchange/piece_request.h"
#include "comm-lib/session/frames.h"
#include "comm-lib/session/in_flight_pieces.h"
#include "comm-lib/session/owner_waits.h"
#include "comm-lib/session/send_queue.h"
#include "common/base/buffer.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"

namespace gleaner::session {

class Contributions {
 public:
  // `pool` must outlive this object. `queue` has no plan yet.
  Contributions(const Identity& identity, SendQueue queue, BufferPool* pool);

  // Brings a plan into force: the first one, or a successor of the last one. Partitions in flight that the plan gives
  // to another owner become ready to be pushed again. Returns their number.
  uint32_t apply(std::shared_ptr<const plan::Plan> plan, absl::Duration now);

  // The functions below need a plan.

  // Makes the contributions of a piece ready to be pushed. The caller has checked the piece (exchange::check_piece()).
  // FailedPrecondition, without an effect: a partition is in flight.
  absl::Status start(PieceRequest piece, absl::Duration now);

  void connect(uint32_t owner);     // also replaces an earlier connection
  void disconnect(uint32_t owner);  // awaited partitions become ready to be pushed again
  bool is_connected(uint32_t owner) const { return queue_.is_connected(owner); }
  // Returns all partitions of the owner.
  std::span<const uint32_t> owned_by(uint32_t owner) const { return queue_.owned_by(owner); }

  // Returns the partition to push now. The caller then calls push().
  std::optional<uint32_t> next(absl::Duration now) { return queue_.next(now); }
  struct Push {
    exchange::Send send;
    bool is_repeated = false;
  };
  // Returns the kPush of a partition, which is at this step.
  Push push(uint32_t partition, uint64_t step, absl::Duration now);

  // Checks that a kResult or kDefer of a partition, which is at this step, answers a push of this worker.
  absl::Status check_answer(uint32_t partition, uint64_t step, const wire::Header& header) const;
  // Takes the partition's result, which has passed check_answer(), into the piece's output.
  void take_result(uint32_t partition, const Buffer& result, absl::Duration now);
  // Records that the owner has dropped the contribution, which is pushed again after a pause. Returns false, and does
  // nothing, if it is to be pushed again anyway.
  bool defer(uint32_t partition, absl::Duration now);

  // Makes deferred contributions ready whose pause is over. Returns whether the window or a credit grew.
  bool tick(absl::Duration now) { return queue_.tick(now); }

  // Ends the pieces that are done, or all pieces (in_flight_pieces.h).
  void complete(std::vector<Done>& done) { pieces_.complete(done); }
  void fail(const absl::Status& status, std::vector<Done>& done);

  const InFlightPieces& pieces() const { return pieces_; }
  const SendQueue& queue() const { return queue_; }
  void set_round_trip(absl::Duration round_trip) { queue_.set_round_trip(round_trip); }
  OwnerWaits& waits() { return waits_; }
  const OwnerWaits& waits() const { return waits_; }

 private:
  struct State {
    bool missing = false;  // the partition's piece is in flight, and its result has not arrived
    bool pushed = false;   // the partition is missing, and was pushed to this owner or an earlier one
    // The partition's owner changed in this step: frames to an earlier owner may refer to the input.
    bool moved = false;
  };

  uint32_t move(const plan::Plan& later, absl::Duration now);

  const Identity identity_;
  BufferPool* const pool_;
  std::shared_ptr<const plan::Plan> plan_;
  SendQueue queue_;
  InFlightPieces pieces_;
  OwnerWaits waits_;
  std::vector<State> states_;  // by partition
};

}  // namespace gleaner::session
