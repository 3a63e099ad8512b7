// The local ranks of one worker: g processes on one machine (one per GPU) that sum a tensor over shared memory before
// it goes to the network, all of them in parallel, and that all get the network's result. Local rank 0, the leader,
// alone does the network part. With g = 1 there is no Group.
//
// One push_pull of a tensor:
//   every rank    start()        copies its input to its slot in shared memory
//   every rank                   once all have: sums its slice of all slots, in order of rank, into the sum region.
//                                The partial sum is rounded to the tensor's type (common/kernels, divisor 1)
//   leader        on_reduced()   the network's push_pull runs on the sum region, in place, then publish()
//   every rank    on_done()      after the sum region was copied to its output
// Ranks may start tensors in any order of their own. docs/local-ranks.md has the messages between the processes.
//
// Threads: a Group belongs to one thread. It never blocks: that thread waits until descriptor() is readable, or not at
// all while has_work(), and calls poll(). All callbacks come from poll(), none from start(), publish() or fail(), which
// may be called from callbacks; the Group must not be destroyed by one. A poll() copies or sums for some hundred
// microseconds at most, so that the thread can serve the network in between.
//
// Memory: (g + 1) * the bytes of all registered tensors per worker (each rounded up to 64, the lot to pages), in
// anonymous files without a name that end with the last process. Set aside at registration, so that a machine short of
// memory says so in a Status rather than by SIGBUS. Once warm, a push_pull allocates nothing.
//
// Trust: ranks find each other by an abstract Unix socket of the network namespace, run under the same user, and prove
// that they know the job's secret.
//
// Failure: on_failed() is the last callback, on every rank, and ends all push_pulls. What the leader's session does on
// a sum region at that time may go on: the memory stays until the Group is destroyed, so end the session first.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/env.h"
#include "common/kernels/kernels.h"

namespace gleaner::local {

inline constexpr uint32_t kMaxLocalRanks = 64;

struct Options {
  uint64_t job = 0;                            // wire::job_number()
  uint32_t worker = 0;                         // index of this worker
  uint32_t local_rank = 0;                     // 0 is the leader
  uint32_t local_size = 0;                     // g: 2 to kMaxLocalRanks
  std::array<uint8_t, 32> secret{};            // the job's: a wire::Secret
  absl::Duration timeout = absl::Seconds(60);  // until all local ranks are there
};

struct TensorShape {
  uint64_t elements = 0;
  DataType type = DataType::kFloat32;
};

class Events {
 public:
  virtual ~Events() = default;
  // All local ranks are there.
  virtual void on_connected() = 0;
  // Leader only: `sum` holds the partial sum over the local ranks. It is the caller's until publish(); the result is to
  // be written to the same memory.
  virtual void on_reduced(uint32_t tensor, ReduceOp op, MutableBytes sum) = 0;
  // The push_pull is over; OK: the output holds the result. The next one of this tensor may be started, from here too.
  virtual void on_done(uint32_t tensor, const absl::Status& status) = 0;
  // The group is dead. Unavailable names the local rank that died or left; DeadlineExceeded those that did not come;
  // InvalidArgument a disagreement (size, version, tensors); PermissionDenied a wrong secret or user;
  // ResourceExhausted: no memory. Or the status of another rank's fail(). Inputs and outputs are not touched any more.
  virtual void on_failed(const absl::Status& status) = 0;
};

class Group {
 public:
  // Begins to look for the other local ranks; on_connected() or on_failed() follows. `kernels` and `events` outlive the
  // Group. InvalidArgument: options out of range; AlreadyExists: another process is this worker's leader;
  // ResourceExhausted: file descriptors.
  static absl::StatusOr<std::unique_ptr<Group>> create(const Env& env, const Options& options,
                                                       const kernels::Kernels* kernels, Events* events);
  // Tells the others. A rank with nothing in flight leaves in peace: others fail only if they start something more.
  // Otherwise they fail at once.
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // Adds tensors; their ids go on from the last one, from 0 on. To be called with the same lists in the same order on
  // all ranks, whenever each comes to it, also before on_connected(). InvalidArgument: sizes beyond the address space;
  // ResourceExhausted: no memory (on_failed() with it may also come later).
  virtual absl::Status register_tensors(std::span<const TensorShape> tensors) = 0;

  // Begins this rank's part of a push_pull, any time after register_tensors(). `input` and `output` (which may be the
  // same memory) have the tensor's size and stay valid and untouched until on_done() or on_failed(). All ranks must
  // ask for the same op, or on_done() says InvalidArgument on all of them. InvalidArgument: no such tensor, wrong size;
  // FailedPrecondition: this tensor is in flight; after on_failed(): its status.
  virtual absl::Status start(uint32_t tensor, ReduceOp op, ConstBytes input, MutableBytes output) = 0;

  // Leader only, once for every on_reduced(): the network's part is over. Spreads the result or, if not OK, the status
  // (its message may be cut to 400 bytes). Ignored after on_failed().
  virtual void publish(uint32_t tensor, const absl::Status& status) = 0;

  // Leader only, of a tensor that was reduced: the memory that its sum lies in, and others' beside it. It stays until
  // the Group is destroyed.
  virtual MutableBytes sums_beside(uint32_t tensor) const = 0;

  // Ends the group for a reason of this rank's own (not OK): the others' on_failed() comes with it, naming this rank.
  // There is no callback here.
  virtual void fail(const absl::Status& status) = 0;

  // Readable when poll() has something to handle. For poll() or epoll; owned by the Group.
  virtual int descriptor() const = 0;
  // Handles what has come and does a bounded part of the work.
  virtual void poll() = 0;
  // poll() has more to do without waiting for anybody.
  virtual bool has_work() const = 0;
  // Nothing is in flight here and all that others need from this rank was sent: it may leave.
  virtual bool idle() const = 0;

 protected:
  Group() = default;
};

}  // namespace gleaner::local
