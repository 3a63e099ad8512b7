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
    kNetwork,  // the sum is complete: the caller begins the network's part
    kRefuse,   // all ranks are ready, but ask for different ops: the caller ends the group
  };

  explicit PushPullRecord(uint32_t ranks) : everyone_(ranks == 64 ? ~uint64_t{0} : (uint64_t{1} << ranks) - 1) {}

  // Adds the next tensor, which the first `reducers` ranks sum; 0: the tensor is empty.
  void add(uint32_t reducers);

  absl::StatusOr<Next> on_ready(uint32_t rank, uint32_t tensor, uint64_t step, ReduceOp op);
  absl::StatusOr<Next> on_reduced(uint32_t rank, uint32_t tensor, uint64_t step);
  // Ends the push_pull for which kNetwork was returned. Requires summed(). A push_pull that was refused never ends.
  void publish(uint32_t tensor);

  bool summed(uint32_t tensor) const;  // between kNetwork and publish()
  bool open() const;                   // a push_pull has begun and is not published

  uint32_t reducers(uint32_t tensor) const { return tensors_[tensor].reducers; }
  ReduceOp op(uint32_t tensor) const { return tensors_[tensor].op; }
  uint64_t step(uint32_t tensor) const { return tensors_[tensor].step; }
  // After kRefuse: returns the lowest rank that asks for this op, kSum or kAverage.
  uint32_t first_that_asks_for(ReduceOp op, uint32_t tensor) const;

 private:
  enum class Phase : uint8_t { kGathering, kReducing, kPublishing, kRefused };
  struct Tensor {
    uint64_t step = 0;
    uint64_t here = 0;      // a bit per rank: the rank is ready, or in kReducing: it has summed its slice
    uint64_t averages = 0;  // a bit per rank: the rank asked for an average
    uint32_t reducers = 0;
    ReduceOp op = ReduceOp::kSum;
    Phase phase = Phase::kGathering;
  };
  absl::StatusOr<Tensor*> find(uint32_t rank, uint32_t tensor, uint64_t step, Phase phase);

  const uint64_t everyone_;
  std::vector<Tensor> tensors_;
};

}  // namespace gleaner::local
