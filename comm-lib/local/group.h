// Group connects the local ranks of one worker: g processes on one machine, one per GPU. All of them sum a tensor over
// shared memory in parallel before the sum goes to the network, and all get the network's result. Only local rank 0,
// the *leader*, does the network part. With g = 1 there is no Group. docs/local-ranks.md has the messages between the
// processes.
//
// A *push_pull* of a tensor is one sum of it in which all local ranks take part, each with a *request*:
//   every rank   start()       copies its input to its slot in shared memory
//   every rank                 when all slots are full: sums its slice of all slots, in order of rank, into the partial
//                              sum, which has the accumulator's type and is not rounded (common/kernels)
//   leader       on_reduced()  runs the network's push_pull of the partial sum, then calls publish()
//   every rank   on_done()     has copied the network's result to its output
// Each rank may start tensors in its own order.
//
// Threads: a Group belongs to one thread, and never blocks. That thread waits until descriptor() is readable, or does
// not wait while has_work(), and then calls poll(). All callbacks come from poll(), none from start(), publish() or
// fail(). Callbacks may call these functions, but must not destroy the Group. A poll() copies or sums for some hundred
// microseconds at most, so that the thread can serve the network in between.
//
// Memory: a worker shares (g + 1) times the bytes of all registered tensors, and (g + 3) times those of fp16 and bf16,
// whose partial sums are fp32 and lie apart from the results. Each tensor is rounded up to 64 bytes, and
// all tensors registered together to whole pages. The memory is in anonymous files, which end with the last process. It
// is reserved at registration, so that a lack of memory is a Status and not a SIGBUS. Once warm, a push_pull allocates
// no memory.
//
// Trust: ranks find each other by an abstract Unix socket of the network namespace, run under the same user, and prove
// that they know the job's secret.
//
// Failure: on_failed() is the last callback, on every rank, and ends all push_pulls. The leader's session may still use
// a partial sum then. The memory exists until the Group is destroyed, so end the session first.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "comm-lib/device/access.h"
#include "comm-lib/device/kernels/image.h"
#include "common/base/bytes.h"
#include "common/base/env.h"
#include "common/kernels/kernels.h"
#include "common/trace/event.h"

namespace gleaner::local {

inline constexpr uint32_t kMaxLocalRanks = 64;

struct Options {
  uint64_t job = 0;                                 // wire::job_number() of the job's name
  uint32_t worker = 0;                              // index of this worker
  uint32_t local_rank = 0;                          // 0 is the leader
  uint32_t local_size = 0;                          // g: 2 to kMaxLocalRanks
  std::array<uint8_t, 32> secret{};                 // the job's wire::Secret
  size_t gpu_bytes = 0;                             // most memory of this rank's GPU for sums there; 0: the CPU sums
  ConstBytes gpu_kernels = device::kernel_image();  // for these sums
  absl::Duration timeout = absl::Seconds(60);       // all local ranks must be connected within this time
};

struct TensorShape {
  uint64_t elements = 0;
  DataType type = DataType::kFloat32;
  std::string name;  // for errors
};

class Events {
 public:
  virtual ~Events() = default;
  // All local ranks are connected.
  virtual void on_connected() = 0;
  // Leader only: `sum` holds the partial sum over the local ranks, in type accumulator_of() of the tensor's type. The
  // caller writes the network's result, in the tensor's type, to `result`. The two are the same memory if their types
  // are the same, and otherwise apart. The caller owns both until publish().
  virtual void on_reduced(uint32_t tensor, ReduceOp op, MutableBytes sum, MutableBytes result) = 0;
  // The push_pull has ended; OK: the output holds the result. The tensor may be started again, also from this callback.
  virtual void on_done(uint32_t tensor, const absl::Status& status) = 0;
  // The group has failed, and no longer accesses inputs and outputs, except by copies of GPUs that were queued; the
  // events of their requests mark these. Unavailable names the local rank that died or
  // left. DeadlineExceeded names the ranks that did not connect. InvalidArgument: ranks disagree on the size, the
  // version, the tensors or the op of a push_pull. PermissionDenied: a wrong secret or user. ResourceExhausted: no
  // memory is left. Otherwise the status is that of another rank's fail().
  virtual void on_failed(const absl::Status& status) = 0;

  // Returns whether a trace is on. Only then the GPU's streams report the begin of copies that wait for the program.
  virtual bool traces_gpu() const { return false; }
  // This rank's GPU has come to `point` of its work for a tensor, a kind for which trace::is_of_gpu(). Called at most
  // while traces_gpu().
  virtual void on_gpu(uint32_t /*tensor*/, trace::Kind /*point*/) {}
};

class Group {
 public:
  // Begins to connect to the other local ranks; on_connected() or on_failed() follows. `kernels` and `events` must
  // outlive the Group. InvalidArgument: an option is out of range. AlreadyExists: another process is this worker's
  // leader. ResourceExhausted: no file descriptor is left.
  static absl::StatusOr<std::unique_ptr<Group>> create(const Env& env, const Options& options,
                                                       const kernels::Kernels* kernels, Events* events);
  // Leaves the group and tells the other ranks. If this rank has requests in flight, the others fail now; otherwise
  // they fail only when they start another push_pull.
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // Adds tensors, whose ids count from 0 over all calls. All ranks must make the same calls in the same order, each at
  // any time, even before on_connected(). An error fails the group. InvalidArgument: an unknown type, or more bytes
  // than the address space holds. ResourceExhausted: no memory is left; this may also come later, by on_failed().
  virtual absl::Status register_tensors(std::span<const TensorShape> tensors) = 0;

  // Begins this rank's part of a push_pull, at any time after register_tensors(). `input` and `output` have the
  // tensor's size. They may be the same memory but must not overlap in part. They must stay valid, and the caller must
  // not touch them, until on_done() or on_failed(). All requests on a GPU must be on the same one, whose Device
  // outlives the Group; after on_failed() its events mark the copies that were queued. All ranks must ask for the same
  // op, otherwise the group fails. InvalidArgument: there is no such tensor, a size or the op is wrong, or the memory
  // overlaps in part. FailedPrecondition: the tensor is in flight. Unavailable: another local rank has left. After
  // on_failed(): its status.
  virtual absl::Status start(uint32_t tensor, ReduceOp op, ConstBytes input, MutableBytes output,
                             const device::Access& access = {}) = 0;

  // Ends the network's part of a push_pull, once for each on_reduced(). Only on the leader. Sends the result to all
  // ranks, or `status` if it is not OK; its message may be cut to 400 bytes. Ignored after on_failed().
  virtual void publish(uint32_t tensor, const absl::Status& status) = 0;

  // Returns the memory that has the partial sums and the results of this tensor and of all tensors that were registered
  // with it. Only on the leader, for a tensor that was reduced. The memory exists until the Group is destroyed.
  virtual MutableBytes sums_beside(uint32_t tensor) const = 0;

  // Fails the group for a reason of this rank; `status` is not OK. The other ranks get on_failed() with the status and
  // this rank's name. This rank gets no callback.
  virtual void fail(const absl::Status& status) = 0;

  // Returns a descriptor that is readable when poll() has something to handle; for poll() or epoll. The Group owns it.
  virtual int descriptor() const = 0;
  // Handles received messages and does a bounded part of the work.
  virtual void poll() = 0;
  // Returns whether poll() has work that needs no other rank.
  virtual bool has_work() const = 0;
  // Returns whether this rank may leave: it has no request in flight, and has sent all that the other ranks need.
  virtual bool idle() const = 0;

 protected:
  Group() = default;
};

}  // namespace gleaner::local
