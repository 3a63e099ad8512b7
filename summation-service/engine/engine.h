// The summer's protocol core: takes frames of one job, returns frames to send. No I/O, no clock, no thread.
//
// For each partition it owns and each step it gathers one contribution per worker, in any order. As soon as all n are
// in, it sums them in rank order (kernels/kernels.h) and sends the result to every worker.
//
// Exactly once: a contribution is (epoch, tensor, partition, step, worker). A second copy is ignored; if that sum is
// made and still retained, its result is sent to that worker again, which lost the first with its connection. A worker
// starts step s+1 of a tensor only after it has all of step s, so at most two steps of a partition are alive:
// contributions for s+1 gather while the result of s is retained. A push more than one step ahead is a protocol error.
// Retention: a result is kept until every worker has acknowledged it (kAck), or pushed the next step of that partition,
// which says the same. Results are numbered, and carry the first number that some worker may lack. Workers keep their
// results for as long, to hand them on if this summer is lost.
// Takeover: an owner begins with a partition when all workers have said how far they are (by a kAck or a push). If some
// have a result that others lack, the last owner made it, and is lost or may not send it any more. The new owner asks
// one of the workers that have the result for it (kFetch), and retains what it hands on (kHand) like a result made
// here. See takeover.h.
// Accumulation: a partition of a tensor that accumulates has a running sum instead; see accumulate.h.
// Fencing: frames about a partition of epochs before its `since` are dropped and counted. A frame of a prepared plan
// commits that plan; a frame of a later epoch is a protocol error.
// Memory: the first contribution of a partition reserves the memory of its sum: n contributions and a result, each in a
// block of a power of two of bytes (block_size()). If that would exceed the cap, the push is dropped and answered by
// kDefer. Partitions that have begun are always let in, so a worker that tries all its ready partitions always makes
// progress. That holds for workers that run the same program: a cap can't serve one that starts a tensor's next step
// before the tensors that another worker waits for first. See docs/protocol.md.
//
// Per frame, once warm: no allocation, no lock, no system call (tests/unit counts them).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/kernels/kernels.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"

namespace gleaner::engine {

struct Options {
  uint64_t job = 0;               // job_number()
  uint32_t self = 0;              // member index of this summer
  uint64_t memory_cap_bytes = 0;  // 0: none
};

// A frame for one worker. The header still lacks what Connection::send() seals.
struct Send {
  uint32_t worker = 0;
  wire::Header header;
  Buffer payload;
};

// Filled by the engine, emptied and reused by the caller.
using Actions = std::vector<Send>;

struct Counters {
  uint64_t contributions = 0;  // accepted
  uint64_t sums = 0;           // made
  uint64_t summed_bytes = 0;   // bytes of results made
  uint64_t duplicates = 0;     // contributions ignored
  uint64_t resent = 0;         // results sent once more
  uint64_t fenced = 0;         // frames, or keys of an kAck, of another owner's time
  uint64_t takeovers = 0;      // partitions of which all workers have said how far they are
  uint64_t handed = 0;         // results that workers handed on
  uint64_t deferred = 0;       // pushes answered by kDefer
  // All three count the memory of buffers, not the payloads in them.
  uint64_t memory_bytes = 0;       // reserved now, under the cap
  uint64_t accumulated_bytes = 0;  // of running sums; beside the cap, they are there for as long as the job
  uint64_t handed_bytes = 0;  // of results that are, or are being, handed on; beside the cap, or nobody could go on
};

class Engine {
 public:
  // `kernels` and `pool` outlive the engine; payload buffers may come from `pool` or anywhere else.
  Engine(const Options& options, const kernels::Kernels* kernels, BufferPool* pool);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Plan change. prepare() checks that this summer can follow: FailedPrecondition when it is no successor of the one in
  // force (plan/successor.h); ResourceExhausted when the cap can't hold even one of its partitions. A prepared plan
  // comes into force by commit(), or by the first frame of its epoch; a later prepare() replaces it, discard() forgets
  // it. What moves to another owner is forgotten here, what comes begins with a takeover.
  absl::Status prepare(std::shared_ptr<const plan::Plan> plan);
  // The connected workers are told that the plan is in force (kCommitted): a worker without a coordinator follows that.
  absl::Status commit(uint32_t epoch, Actions& actions);
  void discard(uint32_t epoch);

  // There is a connection to this worker.
  void on_connected(uint32_t worker, Actions& actions) const;

  // A kPush, kAck, kHand or kRelease from `worker`. Appends what is to be sent. An error means that this frame can't be
  // taken, and nothing was changed. FailedPrecondition: not now, since one of the two is behind or was started anew;
  // the connection is to be closed with it. InvalidArgument: never, since workers ask for different things or one broke
  // the protocol; a kRefuse that says so is among what is to be sent, and no frame of this worker counts any more.
  absl::Status on_frame(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);

  uint32_t epoch() const;  // in force; 0 before the first commit
  // True if no sum gathers and every worker has every result.
  bool idle() const;
  // True if no other worker needs this summer once `worker` begins no further step: every worker has every result, and
  // each sum that gathers lacks the contribution of `worker`, so it can never be made. Visits all partitions.
  bool idle_without(uint32_t worker) const;
  const Counters& counters() const;

 private:
  struct Core;
  std::unique_ptr<Core> core_;
};

}  // namespace gleaner::engine
