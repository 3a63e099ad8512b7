#include "comm-lib/local/push_pull_record.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::local {
void PushPullRecord::add(uint32_t reducers) {
  Tensor tensor;
  tensor.reducers = reducers;
  tensors_.push_back(tensor);
}

absl::StatusOr<PushPullRecord::Tensor*> PushPullRecord::find(uint32_t rank, uint32_t tensor, uint64_t step,
                                                             Phase phase) {
  const absl::string_view name = phase == Phase::kGathering  ? "READY"
                                 : phase == Phase::kReducing ? "REDUCED"
                                                             : "PLACED";
  if (tensor >= tensors_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("local rank ", rank, " sent ", name, " for tensor ", tensor,
                                                   "; there are ", tensors_.size(), " tensors"));
  }
  Tensor& found = tensors_[tensor];
  const bool takes_part = phase == Phase::kGathering || rank < found.reducers;
  if (found.phase != phase || found.step != step || !takes_part || (found.here >> rank & 1) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("local rank ", rank, " sent ", name, " for tensor ", tensor,
                                                   " at step ", step, ", which is at step ", found.step,
                                                   " and does not expect it now"));
  }
  found.here |= uint64_t{1} << rank;
  return &found;
}

absl::StatusOr<PushPullRecord::Next> PushPullRecord::on_ready(uint32_t rank, uint32_t tensor, uint64_t step,
                                                              ReduceOp op, bool by_gpu) {
  if (!is_valid(op)) {
    return absl::InvalidArgumentError(absl::StrCat("local rank ", rank, " sent READY for tensor ", tensor,
                                                   " with the unknown op ", static_cast<int>(op)));
  }
  GLN_ASSIGN_OR_RETURN(Tensor * found, find(rank, tensor, step, Phase::kGathering));
  if (op == ReduceOp::kAverage) found->averages |= uint64_t{1} << rank;
  const uint64_t bit = uint64_t{1} << rank;
  found->by_gpu = by_gpu ? found->by_gpu | bit : found->by_gpu & ~bit;
  if (found->here != everyone_) return Next::kWait;
  if (found->by_gpu != 0 && found->by_gpu != everyone_) {
    found->here &= ~found->by_gpu;
    return Next::kCopy;
  }
  found->here = 0;
  found->op = found->averages == 0 ? ReduceOp::kSum : ReduceOp::kAverage;
  if (found->averages != 0 && found->averages != everyone_) {
    found->phase = Phase::kRefused;
    return Next::kRefuse;
  }
  found->phase = found->reducers == 0 ? Phase::kPublishing : Phase::kReducing;
  return found->reducers == 0 ? Next::kNetwork : Next::kReduce;
}

absl::StatusOr<PushPullRecord::Next> PushPullRecord::on_reduced(uint32_t rank, uint32_t tensor, uint64_t step) {
  GLN_ASSIGN_OR_RETURN(const Tensor* found, find(rank, tensor, step, Phase::kReducing));
  if (static_cast<uint32_t>(std::popcount(found->here)) < found->reducers) return Next::kWait;
  tensors_[tensor].phase = Phase::kPublishing;
  return Next::kNetwork;
}

void PushPullRecord::publish(uint32_t tensor, bool by_gpu) {
  Tensor& found = tensors_[tensor];
  found.here = 0;
  if (!by_gpu) return begin_step(found);
  found.phase = Phase::kPlacing;
}

absl::StatusOr<PushPullRecord::Next> PushPullRecord::on_placed(uint32_t rank, uint32_t tensor, uint64_t step) {
  GLN_ASSIGN_OR_RETURN(Tensor * found, find(rank, tensor, step, Phase::kPlacing));
  if (static_cast<uint32_t>(std::popcount(found->here)) < found->reducers) return Next::kWait;
  begin_step(*found);
  return Next::kGather;
}

void PushPullRecord::begin_step(Tensor& tensor) {
  tensor.phase = Phase::kGathering;
  tensor.here = 0;
  tensor.averages = 0;
  ++tensor.step;
}

bool PushPullRecord::summed(uint32_t tensor) const {
  return tensor < tensors_.size() && tensors_[tensor].phase == Phase::kPublishing;
}

bool PushPullRecord::open() const {
  return std::any_of(tensors_.begin(), tensors_.end(),
                     [](const Tensor& tensor) { return tensor.phase != Phase::kGathering || tensor.here != 0; });
}

uint32_t PushPullRecord::first_that_asks_for(ReduceOp op, uint32_t tensor) const {
  const uint64_t averages = tensors_[tensor].averages;
  return static_cast<uint32_t>(op == ReduceOp::kAverage ? std::countr_zero(averages) : std::countr_one(averages));
}

}  // namespace gleaner::local
