// WorkerGroup: the executors of a small job, for tests that deliver each frame by hand. A frame to a worker waits in
// its inbox until the test delivers it.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "comm-lib/executor/executor.h"
#include "tests/manual_clock.h"
#include "tests/unit/executor/scheduled_plans.h"

namespace gleaner::testing {

inline constexpr uint64_t kJob = 7;

class WorkerGroup {
 public:
  // The workers are connected to each other, unless `connected` is false.
  explicit WorkerGroup(const ScheduledPlan& spec, uint64_t window_bytes = 1 << 20, bool connected = true)
      : plan(build_plan(spec)), kernels(*kernels::Kernels::choose("")), inboxes_(spec.workers) {
    for (uint32_t i = 0; i < spec.workers; ++i) {
      workers_.push_back(std::make_unique<executor::Executor>(
          executor::Options{.job = kJob, .worker = i, .window_bytes = window_bytes}, &pool, &kernels,
          &recorders.emplace_back(&clock)));
      absl::Status status = workers_[i]->apply(plan, now, actions);
    }
    for (uint32_t i = 0; connected && i < spec.workers; ++i) {
      for (uint32_t peer = 0; peer < spec.workers; ++peer) connect(i, peer);
    }
    for (auto& inbox : inboxes_) inbox.clear();  // the confirmations of new connections
  }

  executor::Executor& operator[](uint32_t worker) { return *workers_[worker]; }
  std::deque<exchange::Send>& inbox(uint32_t worker) { return inboxes_[worker]; }

  // Each of the following functions moves what the worker sends into the inboxes.
  void connect(uint32_t worker, uint32_t peer) {
    workers_[worker]->on_connected(peer, now, actions);
    collect();
  }
  void tick(uint32_t worker) {
    workers_[worker]->on_tick(now, actions);
    collect();
  }
  // Starts a push_pull in place, from the memory of the worker for the tensor, by the schedule that `plan` names.
  absl::Status start(uint32_t worker, uint32_t tensor = 0, ReduceOp op = ReduceOp::kSum) {
    return start_by(worker, plan->tensors[tensor].schedule, tensor, op);
  }
  absl::Status start_by(uint32_t worker, std::optional<uint32_t> schedule, uint32_t tensor = 0,
                        ReduceOp op = ReduceOp::kSum) {
    std::vector<std::byte>& memory = memory_of(worker, tensor);
    const absl::Status status = workers_[worker]->start({.id = 100 + tensor,
                                                         .tensor = tensor,
                                                         .op = op,
                                                         .input = Buffer::borrow(memory),
                                                         .output = MutableBytes(memory),
                                                         .schedule = schedule},
                                                        now, actions);
    collect();
    return status;
  }
  absl::Status call(uint32_t worker, const executor::Call& call) {
    const absl::Status status = workers_[worker]->start_call(call, now, actions);
    collect();
    return status;
  }
  // Delivers a copy of a frame to `worker`, as a network does.
  absl::Status deliver(uint32_t worker, const exchange::Send& frame) {
    Buffer payload = pool.take(frame.payload.size());
    if (!payload.empty()) std::memcpy(payload.bytes().data(), frame.payload.bytes().data(), payload.size());
    const absl::Status status =
        workers_[worker]->on_frame(frame.header.sender, frame.header, std::move(payload), now, actions);
    collect();
    return status;
  }
  // Takes the next frame to `worker` out of its inbox and delivers it. NotFound: there is none.
  absl::Status deliver_next(uint32_t worker) {
    if (inboxes_[worker].empty()) return absl::NotFoundError("no frame waits for the worker");
    return deliver(worker, take_next(worker));
  }
  exchange::Send take_next(uint32_t worker) {
    exchange::Send frame = inboxes_[worker].front();
    inboxes_[worker].pop_front();
    return frame;
  }
  // Delivers frames until there are none. Returns the first error.
  absl::Status deliver_queued() {
    absl::Status status;
    for (bool delivered = true; delivered;) {
      delivered = false;
      for (uint32_t i = 0; i < workers_.size(); ++i) {
        for (; !inboxes_[i].empty(); delivered = true) status.Update(deliver_next(i));
      }
    }
    return status;
  }
  // Does the same, with ticks, until no tick sends a frame.
  absl::Status deliver_all() {
    absl::Status status;
    for (bool sent = true; sent;) {
      status.Update(deliver_queued());
      for (uint32_t i = 0; i < workers_.size(); ++i) tick(i);
      sent = std::ranges::any_of(inboxes_, [](const auto& inbox) { return !inbox.empty(); });
    }
    return status;
  }

  std::vector<std::byte>& memory_of(uint32_t worker, uint32_t tensor) {
    std::vector<std::byte>& memory = memory_[worker * 16 + tensor];
    if (memory.empty()) memory.resize(plan->tensors[tensor].bytes());
    return memory;
  }
  // The tensor's fp32 values of a worker, which start as `value` each.
  void fill(uint32_t worker, uint32_t tensor, float value) {
    std::vector<float> values(plan->tensors[tensor].elements, value);
    if (!values.empty()) std::memcpy(memory_of(worker, tensor).data(), values.data(), 4 * values.size());
  }
  std::vector<float> values(uint32_t worker, uint32_t tensor = 0) {
    std::vector<float> values(plan->tensors[tensor].elements);
    if (!values.empty()) std::memcpy(values.data(), memory_of(worker, tensor).data(), 4 * values.size());
    return values;
  }
  // Returns the push_pulls that have ended since the last call.
  std::vector<uint64_t> take_done() {
    std::vector<uint64_t> ids;
    for (const exchange::Done& done : actions.done) ids.push_back(done.id);
    actions.done.clear();
    return ids;
  }
  bool idle() const {
    bool idle = true;
    for (const auto& worker : workers_) idle = idle && worker->idle();
    return idle;
  }

  absl::Duration now = absl::Seconds(1);
  BufferPool pool;
  std::shared_ptr<const plan::Plan> plan;
  kernels::Kernels kernels;
  exchange::Actions actions;  // of all workers
  ManualClock clock;
  std::deque<trace::Recorder> recorders;  // by worker; off

 private:
  void collect() {
    for (exchange::Send& send : actions.sends) inboxes_[send.member].push_back(std::move(send));
    actions.sends.clear();
  }

  std::deque<std::vector<std::byte>> memory_ = std::deque<std::vector<std::byte>>(256);  // by worker, tensor
  std::vector<std::deque<exchange::Send>> inboxes_;                                      // by receiver
  std::vector<std::unique_ptr<executor::Executor>> workers_;
};

}  // namespace gleaner::testing
