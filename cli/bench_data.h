// The data of `gleaner bench`, so that anyone can compute the expected bits. docs/bench-data.md is its description.
//
// Element i of rank r at step s, i counted over all tensors in generation order, comes from 64 random bits
//   u = splitmix64(splitmix64(splitmix64(seed ^ s) ^ r) ^ i).
// Pure; no state but the key.
#pragma once

#include <cstdint>

#include "common/base/bytes.h"

namespace gleaner::cli {

uint64_t splitmix64(uint64_t value);

// All elements of one rank at one step.
class BenchData {
 public:
  BenchData(uint64_t seed, uint64_t step, uint32_t rank) : key_(splitmix64(splitmix64(seed ^ step) ^ rank)) {}

  // Fills `bytes`, whole elements of `type`, from element `first` on, little endian.
  void fill(DataType type, uint64_t first, MutableBytes bytes) const;

 private:
  uint64_t key_;
};

}  // namespace gleaner::cli
