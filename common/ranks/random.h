// Random is a small generator of pseudo-random numbers (splitmix64). One seed gives the same numbers on every machine
// and with every standard library, so that a rank map can be computed again. Pure.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

#include "common/base/mix.h"

namespace gleaner::ranks {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() { return mix_bits(state_ += kSplitmix64Step); }
  // Returns a number below `limit`, which is at least 1.
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>((next() >> 32) * limit >> 32); }
  // Returns a number in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // Returns a number of the standard normal distribution (Box and Muller).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  template <typename T>
  void shuffle(std::vector<T>& values) {
    for (uint32_t i = static_cast<uint32_t>(values.size()); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  uint64_t state_;
};

}  // namespace gleaner::ranks
