// BenchData generates the input data of `gleaner bench`. The data is a pure function of seed, step and rank, so every
// program can compute the expected sums bit by bit. docs/bench-data.md describes the data for other programs.
//
// Element i of rank r at step s is made from the 64 bits
//   u = splitmix64(splitmix64(splitmix64(seed ^ s) ^ r) ^ i),
// where i counts elements over all tensors in generation order.
#pragma once

#include <cstdint>

#include "common/base/bytes.h"
#include "common/base/mix.h"

namespace gleaner::cli {

// Generates the elements of one rank at one step.
class BenchData {
 public:
  BenchData(uint64_t seed, uint64_t step, uint32_t rank) : key_(splitmix64(splitmix64(seed ^ step) ^ rank)) {}

  // Fills `bytes`, which must hold whole elements of `type`, with the elements from number `first` on, little endian.
  void fill(DataType type, uint64_t first, MutableBytes bytes) const;

 private:
  uint64_t key_;
};

}  // namespace gleaner::cli
