// Sums handles the partitions of this owner whose tensors do not accumulate, step by step. A partition's contributions
// gather (gathering_sums.h). The sum is sent to every contributor and retained until all of them have it
// (retained_results.h). A partition that comes from an earlier owner is taken over first (takeover.h). engine.h has the
// rules.
//
// The caller has checked that a frame's partition exists, that this summer owns it, that the frame was not meant for an
// earlier owner, and that the payload has the size and the type of the partition. A function that returns an error has
// changed nothing; engine.h explains the codes.
//
// Pure. Once warm, a frame costs no allocation.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/kernels/kernels.h"
#include "common/plan/plan.h"
#include "summation-service/engine/counters.h"
#include "summation-service/engine/frames.h"
#include "summation-service/engine/gathering_sums.h"
#include "summation-service/engine/memory_budget.h"
#include "summation-service/engine/releases.h"
#include "summation-service/engine/retained_results.h"
#include "summation-service/engine/takeover.h"

namespace gleaner::engine {

class Sums {
 public:
  // All pointers must outlive this object.
  Sums(const Identity& identity, const kernels::Kernels* kernels, BufferPool* pool, MemoryBudget* memory,
       Releases* releases);

  // Follows a plan that has just come into force: forgets the partitions that moved to another owner, and begins a
  // takeover of those that moved to this summer.
  void follow(std::shared_ptr<const plan::Plan> plan);

  // Checks that `worker` can have all results of the partition before key.step, as its frame reports.
  absl::Status check_progress(uint32_t worker, const wire::PartitionKey& key) const;
  // Handles a kPush.
  absl::Status push(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);
  // Handles a kHand.
  absl::Status hand(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);
  // Handles a key of a kAck that has passed check_progress().
  void acknowledge(uint32_t worker, const wire::PartitionKey& key, Actions& actions);

  // Returns whether every worker has all results of the partition before key.step.
  bool is_released(const wire::PartitionKey& key) const;
  // Returns whether no result is retained and no contribution of `worker` gathers. O(partitions).
  bool is_idle_without(uint32_t worker) const;
  const Counters& counters() const { return counters_; }  // for these partitions, without bytes of memory
  // Returns the memory of results that workers hand on or have handed on. This memory is outside the budget.
  uint64_t handed_bytes() const { return retained_.handed_bytes(); }

 private:
  struct Progress {
    // The results of all steps before this one exist: this owner or an earlier one made them. The contributions of this
    // step gather, and the result of the step before may still be retained. During a takeover, this is the highest step
    // that any worker has reported.
    uint64_t step = 0;
    std::unique_ptr<Takeover> takeover;  // null: no takeover is under way
  };

  absl::Status check_op(uint32_t worker, const wire::Header& header) const;
  void forget(uint32_t index);
  void on_repeated_push(uint32_t worker, uint32_t index, uint64_t step, Actions& actions);
  void finish_step(uint32_t index, Actions& actions);
  void hear(uint32_t worker, uint32_t index, uint64_t next, Actions& actions);
  void fetch(uint32_t index, Actions& actions);
  void send_result(uint32_t worker, uint32_t index, uint32_t crc, Actions& actions) const;

  const plan::Tensor& tensor_of(uint32_t index) const { return plan_->tensors[plan_->partitions[index].tensor]; }
  uint32_t index_of(const wire::PartitionKey& key) const { return plan_->index_of(key.tensor, key.partition); }

  const Identity identity_;
  MemoryBudget* const memory_;
  Releases* const releases_;
  std::shared_ptr<const plan::Plan> plan_;
  std::vector<uint32_t> groups_;      // by tensor: the number of its group (groups.h)
  std::vector<Progress> partitions_;  // indexed as in the plan; unused for partitions of other owners
  GatheringSums gathering_;
  RetainedResults retained_;
  Counters counters_;
};

}  // namespace gleaner::engine
