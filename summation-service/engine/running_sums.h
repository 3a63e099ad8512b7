// RunningSums handles the partitions of this owner whose tensors accumulate.
//
// Exactly once: a worker sends a contribution only after its previous one was answered. A contribution of a step before
// the worker's count is a repeat.
//
// Staleness: the answer to step t waits until the steps before t - staleness of every worker are in the sum. The
// contribution itself is added when it arrives.
//
// A partition that comes from an earlier owner is taken over first (accumulation_takeover.h).
//
// The caller has checked the same as for Sums (sums.h), and that has() is true for the partition. A function that
// returns an error has changed nothing; engine.h explains the codes. Pure. Once warm, a frame costs no allocation.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/kernels/kernels.h"
#include "common/plan/plan.h"
#include "summation-service/engine/accumulation_takeover.h"
#include "summation-service/engine/counters.h"
#include "summation-service/engine/frames.h"
#include "summation-service/engine/memory_budget.h"
#include "summation-service/engine/releases.h"
#include "summation-service/engine/running_sum.h"

namespace gleaner::engine {

class RunningSums {
 public:
  // All pointers must outlive this object. Contributions that wait for a takeover take memory of the budget; running
  // sums do not. Every kResult carries the number of the first unreleased result, although running sums have no
  // numbers.
  RunningSums(const Identity& identity, const kernels::Kernels* kernels, BufferPool* pool, MemoryBudget* memory,
              const Releases* releases);

  // Follows a plan that has just come into force: forgets the partitions that moved to another owner, and begins the
  // running sums, or the takeovers, of those that this summer owns from now on.
  void follow(std::shared_ptr<const plan::Plan> plan);

  // Returns whether this summer owns the partition and its tensor accumulates.
  bool has(uint32_t index) const { return entries_[index] != nullptr; }

  // Handles a kPush.
  absl::Status push(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);
  // Handles a kHand.
  absl::Status hand(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);
  // Handles a key of a kAck, whose step is the version that the worker has.
  void acknowledge(uint32_t worker, const wire::PartitionKey& key, Actions& actions);

  // For these partitions; accumulated_bytes is the only count of memory.
  const Counters& counters() const { return counters_; }

 private:
  struct Entry {
    RunningSum sum;
    std::unique_ptr<AccumulationTakeover> takeover;  // null: no takeover is under way
  };

  void forget(uint32_t index);
  void keep_until_taken_over(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);
  void contribute(uint32_t worker, uint32_t index, uint64_t step, const Buffer& contribution, Actions& actions);
  void add(uint32_t worker, uint32_t index, const Buffer& contribution);
  void send_answers(uint32_t index, Actions& actions);
  void send_answer(uint32_t worker, uint32_t index, Actions& actions) const;
  void fetch(uint32_t index, Actions& actions) const;
  void end_takeover(uint32_t index, Actions& actions);

  uint32_t index_of(const wire::PartitionKey& key) const { return plan_->index_of(key.tensor, key.partition); }
  const plan::Tensor& tensor_of(uint32_t index) const { return plan_->tensors[plan_->partitions[index].tensor]; }

  const Identity identity_;
  const kernels::Kernels* const kernels_;
  BufferPool* const pool_;
  MemoryBudget* const memory_;
  const Releases* const releases_;
  std::shared_ptr<const plan::Plan> plan_;
  std::vector<std::unique_ptr<Entry>> entries_;  // indexed as in the plan; null: see has()
  Counters counters_;
};

}  // namespace gleaner::engine
