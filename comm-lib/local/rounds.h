// The leader's record of every tensor's push_pull: who is ready, who has summed its slice. No I/O. Errors mean that a
// rank broke the protocol: InvalidArgument names the rank, what was expected and what came.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"

namespace gleaner::local {

class Rounds {
 public:
  enum class Next {
    kWait,     // for other ranks
    kReduce,   // all are ready: tell the first reducers(tensor) ranks
    kNetwork,  // the sum is whole: the network's turn
    kRefuse,   // all are ready, but disagree: publish refusal(tensor)
  };

  explicit Rounds(uint32_t ranks) : everyone_(ranks == 64 ? ~uint64_t{0} : (uint64_t{1} << ranks) - 1) {}

  // The next tensor, which `reducers` ranks sum (the first ones; 0: nobody needs to).
  void add(uint32_t reducers);

  absl::StatusOr<Next> on_ready(uint32_t rank, uint32_t tensor, uint64_t step, ReduceOp op);
  absl::StatusOr<Next> on_reduced(uint32_t rank, uint32_t tensor, uint64_t step);
  // The push_pull that kNetwork or kRefuse was for is over; needs summed().
  void publish(uint32_t tensor);

  bool summed(uint32_t tensor) const;  // between kNetwork or kRefuse and publish()
  bool open() const;                   // some push_pull has begun and is not published

  uint32_t reducers(uint32_t tensor) const { return tensors_[tensor].reducers; }
  ReduceOp op(uint32_t tensor) const { return tensors_[tensor].op; }
  uint64_t step(uint32_t tensor) const { return tensors_[tensor].step; }
  absl::Status refusal(uint32_t tensor) const;

 private:
  enum class Phase : uint8_t { kGathering, kReducing, kPublishing };
  struct Tensor {
    uint64_t step = 0;
    uint64_t here = 0;      // bit per rank: ready, or in kReducing: reduced
    uint64_t averages = 0;  // bit per rank: asked for an average
    uint32_t reducers = 0;
    ReduceOp op = ReduceOp::kSum;
    Phase phase = Phase::kGathering;
  };
  absl::StatusOr<Tensor*> find(uint32_t rank, uint32_t tensor, uint64_t step, Phase phase);

  const uint64_t everyone_;
  std::vector<Tensor> tensors_;
};

}  // namespace gleaner::local
