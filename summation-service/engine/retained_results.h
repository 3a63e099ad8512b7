// RetainedResults holds the last result of each partition until every contributor has acknowledged it.
//
// This owner makes a result (retain()), or an earlier owner made it and a worker hands it on (expect(), then
// receive()). A result gets its number (releases.h) when retain() or receive() is called.
//
// Memory: a result that this owner made takes one block (block_size()), which its sum has reserved; this object gives
// the block back to the budget. Results that workers hand on are outside the budget, and counted by handed_bytes().
// Partitions are named by their index in the plan.
//
// Pure. Once warm, only resize() allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/slots.h"
#include "summation-service/engine/memory_budget.h"
#include "summation-service/engine/releases.h"
#include "summation-service/engine/worker_set.h"

namespace gleaner::engine {

class RetainedResults {
 public:
  // A result as it is sent to workers.
  struct Result {
    ReduceOp op = ReduceOp::kSum;
    uint32_t number = 0;  // see releases.h
    Buffer values;        // empty: not handed on yet
  };

  // Both arguments must outlive this object.
  RetainedResults(MemoryBudget* memory, Releases* releases) : memory_(memory), releases_(releases) {}

  // Makes room for more partitions. The number of workers is the same in every call.
  void resize(uint32_t workers, size_t partitions);

  // Returns whether the partition has a result that is retained or expected.
  bool has(uint32_t partition) const { return by_partition_[partition] != kNone; }
  // Returns whether the result of the partition is retained and `worker`, a contributor, has not acknowledged it.
  bool is_lacked_by(uint32_t partition, uint32_t worker) const;
  const Result& at(uint32_t partition) const { return entries_[by_partition_[partition]].result; }  // needs has()

  // The workers that get a result.
  struct Receivers {
    uint32_t group = 0;  // of the tensor (groups.h)
    uint32_t count = 0;
  };
  // Retains a result that this owner has made and no receiver has acknowledged. The partition must not have a result.
  void retain(uint32_t partition, ReduceOp op, const Receivers& receivers, Buffer values);
  // Expects that a worker hands on the result of a partition of `bytes` bytes, which must not have a result. The
  // workers in `ahead` have the result; `behind` workers lack it.
  void expect(uint32_t partition, uint32_t bytes, const WorkerSet& ahead, uint32_t behind);
  // Retains the expected result.
  void receive(uint32_t partition, ReduceOp op, Buffer values);

  // Records that `worker` has the result of the partition, if there is one; drops the result with the last worker.
  void acknowledge(uint32_t partition, uint32_t worker);
  // Drops the result, although workers may lack it. Needs has().
  void drop(uint32_t partition);

  uint64_t handed_bytes() const { return handed_bytes_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Entry {
    Result result;
    uint32_t bytes = 0;                  // of the partition
    uint32_t group = 0;                  // of its tensor
    uint32_t missing_acks = 0;           // number of workers that have not acknowledged the result
    bool made_by_earlier_owner = false;  // a worker hands the result on
    WorkerSet acknowledged{0};
  };

  Entry& begin(uint32_t partition, uint32_t bytes);

  MemoryBudget* const memory_;
  Releases* const releases_;
  Entry blank_;
  std::vector<uint32_t> by_partition_;  // index in entries_; kNone: the partition has no result
  Slots<Entry> entries_;
  uint64_t handed_bytes_ = 0;
};

}  // namespace gleaner::engine
