// Pieces cuts tensors into the pieces that a stage copies or sums one after the other. So the first partitions of a
// large tensor are sent while the rest is copied, and their results are copied out while the rest is in flight. Pure.
//
// A piece has consecutive whole partitions: as many as it takes to reach 1 MiB, or fewer at the end of a tensor. This
// is small enough that the time to sum and copy a piece is short beside its time on the network. It is large enough
// that the four messages between local ranks, or the calls of the driver, cost little beside the sum or the copies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/plan/plan.h"

namespace gleaner::pipeline {

struct Piece {
  uint32_t tensor = 0;       // index in the plan
  uint32_t first = 0;        // index of its first partition within the tensor
  uint32_t count = 0;        // number of partitions; 0 for a tensor of zero bytes
  uint64_t offset = 0;       // in the ranks' memory of the tensor, in bytes
  uint64_t bytes = 0;        // of that memory
  bool accumulates = false;  // whether its tensor accumulates
};

class Pieces {
 public:
  // Adds the tensors that `plan` adds to the last plan, and returns their pieces. Every tensor has at least one piece.
  std::span<const Piece> extend(const plan::Plan& plan);

  size_t tensors() const { return first_.size() - 1; }
  const Piece& operator[](uint32_t piece) const { return pieces_[piece]; }
  uint32_t first_of(uint32_t tensor) const { return first_[tensor]; }
  uint32_t count_of(uint32_t tensor) const { return first_[tensor + 1] - first_[tensor]; }

 private:
  std::vector<Piece> pieces_;
  std::vector<uint32_t> first_ = {0};  // by tensor: its first piece; one more element at the end
};

}  // namespace gleaner::pipeline
