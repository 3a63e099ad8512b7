// PushPullRecord is the leader's record of every tensor's push_pull: the ranks that are ready, and those that have
// summed their slice. No I/O. An error means that a rank violated the protocol: InvalidArgument names the rank, the
// expected and the received message.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"

namespace gleaner::local {

class PushPullRecord {
 public:
  enum class Next {
    kWait,     // messages of other ranks are missing
    kReduce,   // all ranks are ready: the caller sends REDUCE to the first reducers(tensor) ranks
    kCopy,     // some ranks are ready by their GPUs, others are not: the caller sends COPY to those of by_gpu()
    kNetwork,  // the sum is complete: the caller begins the network's part
    kGather,   // the slices of the result are in the zones: the caller sends GATHER
    kRefuse,   // all ranks are ready, but ask for different ops: the caller ends the group
  };

  explicit PushPullRecord(uint32_t ranks) : everyone_(ranks == 64 ? ~uint64_t{0} : (uint64_t{1} << ranks) - 1) {}

  // Adds the next tensor, which the first `reducers` ranks sum; 0: the tensor is empty.
  void add(uint32_t reducers);

  absl::StatusOr<Next> on_ready(uint32_t rank, uint32_t tensor, uint64_t step, ReduceOp op, bool by_gpu = false);
  absl::StatusOr<Next> on_reduced(uint32_t rank, uint32_t tensor, uint64_t step);
  // Ends the push_pull for which kNetwork was returned. Requires summed(). A push_pull that was refused never ends.
  // `by_gpu`: it ends only when the ranks that have a slice have placed it.
  void publish(uint32_t tensor, bool by_gpu = false);
  absl::StatusOr<Next> on_placed(uint32_t rank, uint32_t tensor, uint64_t step);

  bool summed(uint32_t tensor) const;  // between kNetwork and publish()
  bool open() const;                   // a push_pull has begun and is not published

  uint32_t reducers(uint32_t tensor) const { return tensors_[tensor].reducers; }
  ReduceOp op(uint32_t tensor) const { return tensors_[tensor].op; }
  uint64_t step(uint32_t tensor) const { return tensors_[tensor].step; }
  // Returns the ranks that were ready by their GPUs, a bit per rank: after kReduce all or none.
  uint64_t by_gpu(uint32_t tensor) const { return tensors_[tensor].by_gpu; }
  // After kRefuse: returns the lowest rank that asks for this op, kSum or kAverage.
  uint32_t first_that_asks_for(ReduceOp op, uint32_t tensor) const;

 private:
  enum class Phase : uint8_t { kGathering, kReducing, kPublishing, kPlacing, kRefused };
  struct Tensor {
    uint64_t step = 0;
    uint64_t here = 0;  // a bit per rank: the rank is ready, or has summed (kReducing) or placed (kPlacing) its slice
    uint64_t averages = 0;  // a bit per rank: the rank asked for an average
    uint64_t by_gpu = 0;    // a bit per rank: the rank was ready by its GPU
    uint32_t reducers = 0;
    ReduceOp op = ReduceOp::kSum;
    Phase phase = Phase::kGathering;
  };
  void begin_step(Tensor& tensor);
  absl::StatusOr<Tensor*> find(uint32_t rank, uint32_t tensor, uint64_t step, Phase phase);

  const uint64_t everyone_;
  std::vector<Tensor> tensors_;
};

}  // namespace gleaner::local
