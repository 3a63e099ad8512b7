// Engine is the protocol core of a summer. It takes frames of one job and returns the frames to send. It does no I/O,
// reads no clock and starts no thread.
//
// For each partition that this summer owns and for each step, the engine gathers one contribution per worker, in any
// order: a sum *gathers* until all n contributions have arrived. The engine then adds them in the order of the workers
// (kernels/kernels.h) and sends the result to every worker.
//
// Exactly once: a contribution is identified by (epoch, tensor, partition, step, worker). The engine ignores a second
// copy. If the result of that step is retained and the worker has not acknowledged it, the engine sends the result
// again, because the worker's connection may have broken before the first copy arrived. A worker starts step s + 1 of a
// tensor only after it has all results of step s, so the engine holds at most two steps of a partition: contributions
// to s + 1 gather while the result of s is retained. A push for a later step than the one that gathers is an error
// (FailedPrecondition).
//
// Retention: the engine retains a result until every worker has acknowledged it by a kAck, or by a push of the
// partition's next step. Results are numbered. Each kResult carries the number of the first result that some worker may
// lack (releases.h). Each worker also keeps a result until all workers have it, so that it can hand the result on to
// the next owner if this summer is lost.
//
// Takeover: when a partition moves to this summer, the engine waits until every worker has reported its step, by a kAck
// or a push. If some workers have a result that others lack, the earlier owner made it, but may never send it to the
// others. The engine then asks a worker that has the result for it (kFetch), and retains the result that the worker
// hands on (kHand) like one of its own. See takeover.h.
//
// Accumulation: a partition of a tensor that accumulates has a running sum instead; see running_sums.h.
//
// Fencing: a frame whose epoch is before the `since` of its partition was meant for an earlier owner; the engine drops
// it. A frame of the prepared plan's epoch commits that plan. A frame of any other epoch after that of the plan in
// force is an error (FailedPrecondition).
//
// Memory: the first contribution to a partition reserves the memory of its sum: n contributions and a result, each in a
// block of a power of two of bytes (block_size()). If that would exceed the memory cap, the engine drops the push and
// answers kDefer. The engine accepts every further contribution to a sum that has begun. So workers that try all
// their ready partitions always make progress, provided that they run the same program. If a worker begins the next
// step of a tensor before it begins the tensors that another worker waits for, sums that can't be completed may fill
// the memory, whatever the cap. See docs/protocol.md#sums.
//
// Once warm, a frame costs no allocation, no lock and no system call (tests/unit counts them).
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/kernels/kernels.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"
#include "summation-service/engine/counters.h"
#include "summation-service/engine/frames.h"
#include "summation-service/engine/memory_budget.h"
#include "summation-service/engine/plans.h"
#include "summation-service/engine/releases.h"
#include "summation-service/engine/running_sums.h"
#include "summation-service/engine/sums.h"

namespace gleaner::engine {

struct Options {
  uint64_t job = 0;               // job_number()
  uint32_t self = 0;              // this summer's member index
  uint64_t memory_cap_bytes = 0;  // limit of the memory for sums and results; 0: no limit
};

class Engine {
 public:
  // `kernels` and `pool` must outlive the engine. Payload buffers may come from `pool` or from elsewhere.
  Engine(const Options& options, const kernels::Kernels* kernels, BufferPool* pool);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // prepare() checks that this summer can follow `plan`, and keeps it as the prepared plan in place of an earlier one.
  // FailedPrecondition: `plan` is not a successor of the plan in force (plan/successor.h). ResourceExhausted: the
  // memory cap is too small for a sum of the largest partition that this summer owns. The prepared plan comes into
  // force by commit() or by the first frame of its epoch. The engine then forgets the state of partitions that moved to
  // another owner, and begins a takeover of those that moved to this summer.
  absl::Status prepare(std::shared_ptr<const plan::Plan> plan);
  // Brings the prepared plan into force and sends kCommitted to every worker: a worker without a coordinator commits
  // the plan when it gets that frame. Does nothing if the plan of `epoch` is in force. FailedPrecondition: no plan of
  // `epoch` is prepared.
  absl::Status commit(uint32_t epoch, Actions& actions);
  // Forgets the prepared plan if it has this epoch.
  void discard(uint32_t epoch) { plans_.discard(epoch); }

  // Sends the epoch of the plan in force to a worker that has just connected.
  void on_connected(uint32_t worker, Actions& actions) const { tell_plan(worker, actions); }

  // Handles a kPush, kAck, kHand or kRelease from `worker` and appends the frames to send to `actions`. A frame with an
  // error changes nothing, except that it may commit the prepared plan:
  // - FailedPrecondition: the frame can't be accepted yet, because the worker or this summer follows an earlier plan or
  //   step, or was restarted. The caller closes the connection with this status.
  // - InvalidArgument: the frame can never be accepted, because workers ask for different operations or one of them
  //   violated the protocol. `actions` then contains a kRefuse with the reason. The caller ignores all further frames
  //   of this connection.
  absl::Status on_frame(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);

  uint32_t epoch() const { return plans_.epoch(); }  // epoch of the plan in force; 0 before the first commit
  // Returns true if no sum gathers, no result is retained and no contribution waits for a running sum.
  bool idle() const;
  // Returns true if the other workers no longer need this summer once `worker` begins no further step: no result is
  // retained, and each sum that gathers lacks the contribution of `worker`, so that it can never be made. Does not
  // look at running sums, which other workers may still need. O(partitions) unless idle().
  bool idle_without(uint32_t worker) const;
  Counters counters() const;

 private:
  absl::Status take_frame(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);
  absl::Status on_elements(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);
  absl::Status on_ack(uint32_t worker, const wire::Header& header, const Buffer& payload, Actions& actions);
  absl::Status on_release(uint32_t worker, const wire::Header& header, const Buffer& payload, Actions& actions);
  void refuse(uint32_t worker, const wire::Header& header, const absl::Status& why, Actions& actions) const;
  void bring_into_force(Actions& actions);
  void tell_plan(uint32_t worker, Actions& actions) const;

  const Identity identity_;
  BufferPool* const pool_;
  Plans plans_;
  MemoryBudget memory_;
  Releases releases_;
  Sums sums_;
  RunningSums running_sums_;
  uint64_t fenced_ = 0;  // Counters::fenced
};

}  // namespace gleaner::engine
