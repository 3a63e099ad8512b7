// Tensors cut into the pieces that local ranks sum one after the other, so that the first partitions of a large tensor
// are on the wire while its rest is still being summed, and copied out while its rest still travels. Pure.
//
// A piece is whole partitions, in order, of about 1 MiB: what summing and copying it costs is little beside its way
// over the network, and its four messages between local ranks are little beside its sum.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/plan/plan.h"

namespace gleaner::runtime {

struct Piece {
  uint32_t tensor = 0;  // index in the plan
  uint32_t first = 0;   // partition within the tensor
  uint32_t count = 0;   // of partitions; 0 for a tensor of zero bytes
  uint64_t offset = 0;  // in the tensor
  uint64_t bytes = 0;
  bool accumulates = false;  // its tensor
};

class Pieces {
 public:
  // The pieces of the tensors that `plan` adds to the last one; every tensor has at least one.
  std::span<const Piece> extend(const plan::Plan& plan);

  size_t tensors() const { return first_.size() - 1; }
  const Piece& operator[](uint32_t piece) const { return pieces_[piece]; }
  uint32_t first_of(uint32_t tensor) const { return first_[tensor]; }
  uint32_t count_of(uint32_t tensor) const { return first_[tensor + 1] - first_[tensor]; }

 private:
  std::vector<Piece> pieces_;
  std::vector<uint32_t> first_ = {0};  // of each tensor, and one more at the end
};

}  // namespace gleaner::runtime
