// Exchange sums pieces between the workers of a job: a worker's protocol core. Two classes implement it, and a plan may
// use both, each for some of its tensors:
// - session::Session pushes a partition to its owner, a summer, and gets the sum back;
// - executor::Executor executes the schedule of a collective between the workers (docs/schedules.md).
// Each class has counters of its own, in its own terms (session/counters.h, executor/counters.h).
//
// An Exchange is pure: it does no I/O, reads no clock and starts no thread. It takes pieces, frames and times, and
// appends frames to send and finished pieces to `actions`. The caller (comm-lib/network) keeps the connections to other
// members, and belongs to one thread. Once warm, a partition costs no allocation, no lock and no system call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "comm-lib/exchange/piece_request.h"
#include "common/base/buffer.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"

namespace gleaner::exchange {

class Exchange {
 public:
  virtual ~Exchange() = default;

  // Makes ready what apply() needs for `plan`, which may then come into force or be withdrawn. An error refuses the
  // plan.
  virtual absl::Status prepare(const plan::Plan& /*plan*/) { return absl::OkStatus(); }

  // Brings `plan` into force. The first plan comes before any connection. A later plan must be a successor of the plan
  // in force (plan/successor.h), else apply() returns FailedPrecondition. If a place gets another member, the caller
  // first closes the connection to the earlier member and calls on_disconnected().
  virtual absl::Status apply(std::shared_ptr<const plan::Plan> plan, absl::Duration now, Actions& actions) = 0;

  // Starts the push_pull of a piece. A piece of zero bytes is done immediately. Errors: those of check_piece();
  // FailedPrecondition if there is no plan yet or one of the partitions is in flight.
  virtual absl::Status start(PieceRequest piece, absl::Duration now, Actions& actions) = 0;

  // Records that the connection to `member` is up, so that frames may be sent, or that it has ended.
  virtual void on_connected(uint32_t member, absl::Duration now, Actions& actions) = 0;
  virtual void on_disconnected(uint32_t member) = 0;

  // Handles a frame from `member`. An error means that the member violated the protocol; the caller then closes the
  // connection.
  virtual absl::Status on_frame(uint32_t member, const wire::Header& header, Buffer payload, absl::Duration now,
                                Actions& actions) = 0;

  // Sets the round-trip time of the path to the farthest member, as measured by its connection. To be called from time
  // to time, after the first apply().
  virtual void set_round_trip(absl::Duration round_trip) = 0;

  // Sends what waits for a time. To be called every few milliseconds until idle().
  virtual void on_tick(absl::Duration now, Actions& actions) = 0;

  // Records that a worker has left the job cleanly. From then on no further sum can begin, and every worker has the
  // results of all sums that owners make. `left`: workers that have left, and were not named before.
  virtual void set_ending(std::span<const uint32_t> left) = 0;

  // Ends every piece with `status`. Later pieces end with it, too: start() then returns OK and appends a Done with the
  // status. fail() does not wait for frames that refer to inputs. So before the caller reports a piece as done, it must
  // close its connections.
  virtual void fail(const absl::Status& status, Actions& actions) = 0;

  // Returns the number of the partition's push_pulls that this exchange has ended: the step of the piece in flight, or
  // else of the next piece.
  virtual uint64_t step(uint32_t tensor, uint32_t partition) const = 0;
  // Returns whether this worker may leave the job: no piece is in flight, and no other worker may need a frame that
  // this worker keeps.
  virtual bool idle() const = 0;
  // Returns the members from which frames are due for pieces in flight; the one that has been silent for longest comes
  // first.
  virtual std::vector<uint32_t> waiting_for() const = 0;
};

}  // namespace gleaner::exchange
