// GatheringSums holds the contributions to the partitions that gather, from a partition's first contribution until all
// its contributors have contributed and the sum is made.
//
// begin() reserves the memory of the contributions and of the result, one block each (block_size()). make_sum() gives
// the memory of the contributions back; the block of the result stays reserved, and the caller must give it back.
// drop() gives all of it back. Partitions are named by their index in the plan.
//
// Pure. Once warm, only resize() allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/block_size.h"
#include "common/base/buffer.h"
#include "common/base/slots.h"
#include "common/kernels/kernels.h"
#include "summation-service/engine/memory_budget.h"

namespace gleaner::engine {

class GatheringSums {
 public:
  // All arguments must outlive this object. The result of a sum comes from `pool`.
  GatheringSums(const kernels::Kernels* kernels, BufferPool* pool, MemoryBudget* memory);

  // Makes room for more partitions. The number of workers is the same in every call.
  void resize(uint32_t workers, size_t partitions);

  bool is_gathering(uint32_t partition) const { return by_partition_[partition] != kNone; }
  // Returns whether `worker` has contributed. False if the partition does not gather.
  bool has_contribution(uint32_t partition, uint32_t worker) const;

  // Returns the memory that begin() reserves, in bytes.
  static uint64_t memory_of(uint64_t contributors, uint32_t contribution_bytes, uint32_t result_bytes) {
    return block_size(contribution_bytes) * contributors + block_size(result_bytes);
  }

  // The contributions to a partition.
  struct Shape {
    uint32_t group = 0;         // of its tensor (groups.h)
    uint32_t contributors = 0;  // number of workers in the group
    uint32_t contribution_bytes = 0;
    uint32_t result_bytes = 0;
    uint64_t memory() const { return memory_of(contributors, contribution_bytes, result_bytes); }
  };

  // Begins to gather for a partition that does not gather yet. Returns false, and changes nothing, if the memory budget
  // does not allow it.
  bool begin(uint32_t partition, ReduceOp op, const Shape& shape);

  // The functions below need is_gathering().
  ReduceOp op(uint32_t partition) const { return gatherings_[by_partition_[partition]].op; }
  // Returns the lowest worker that has contributed. Needs a contribution.
  uint32_t first_contributor(uint32_t partition) const;
  // Keeps the contribution of `worker`. Returns true if no other contribution is missing.
  bool add(uint32_t partition, uint32_t worker, Buffer contribution);
  // Returns the sum of all contributions in the order of the workers, divided by `ranks` if the op is kAverage. The
  // contributions have the type `from`, the sum is rounded once to the type `to`. The partition no longer gathers.
  // Needs all contributions.
  Buffer make_sum(uint32_t partition, DataType from, DataType to, uint32_t ranks);
  // Forgets the contributions. The partition no longer gathers.
  void drop(uint32_t partition);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Gathering {
    ReduceOp op = ReduceOp::kSum;
    Shape shape;
    uint32_t missing_contributions = 0;  // number of workers whose contribution is missing
    std::vector<Buffer> contributions;   // by worker; empty: it is missing, or the worker contributes nothing
  };

  void stop_gathering(uint32_t partition);

  const kernels::Kernels* const kernels_;
  BufferPool* const pool_;
  MemoryBudget* const memory_;
  Gathering blank_;
  std::vector<uint32_t> by_partition_;  // index in gatherings_; kNone: the partition does not gather
  // A Gathering is large when there are many workers, but few partitions gather at a time.
  Slots<Gathering> gatherings_;
  uint32_t workers_ = 0;
  std::vector<const std::byte*> sources_;  // scratch space of make_sum()
};

}  // namespace gleaner::engine
