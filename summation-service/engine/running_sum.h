// RunningSum is the running sum of one partition of a tensor that accumulates. It starts from zero. Contributions are
// added in the order in which they arrive.
//
// A worker's *count* is the number of its contributions in the sum, so it is also the step of the worker's next
// contribution. The *version* of the sum is the total of the counts. The *answer* to a contribution is the sum that
// includes it, followed by the counts of all workers. Each contribution makes a new answer in a new buffer, because a
// frame to a worker may still refer to the old buffer.
//
// Pure. Once warm, a contribution costs no allocation.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/buffer.h"
#include "common/kernels/kernels.h"

namespace gleaner::engine {

class RunningSum {
 public:
  explicit RunningSum(uint32_t workers) : counts_(workers), unanswered_(workers) {}
  // Continues from an answer of an earlier owner, which must have the counts of `workers` workers.
  RunningSum(uint32_t workers, Buffer answer);

  // Adds the contribution of `worker`, which is unanswered from now on.
  void add(uint32_t worker, const Buffer& contribution, DataType type, const kernels::Kernels& kernels,
           BufferPool& pool);

  const Buffer& answer() const { return answer_; }  // empty before the first contribution
  uint64_t count(uint32_t worker) const { return counts_[worker]; }
  uint64_t least_count() const;
  uint64_t version() const;

  // Returns whether the last contribution of `worker` is in the sum and not answered yet.
  bool is_unanswered(uint32_t worker) const { return unanswered_[worker] != 0; }
  void set_unanswered(uint32_t worker, bool unanswered) { unanswered_[worker] = unanswered ? 1 : 0; }

 private:
  Buffer answer_;
  std::vector<uint64_t> counts_;     // by worker
  std::vector<uint8_t> unanswered_;  // by worker
};

}  // namespace gleaner::engine
