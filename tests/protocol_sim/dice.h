// Dice: the simulator's only source of random numbers. It uses splitmix64, so that a seed gives the same run on every
// machine.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/mix.h"

namespace gleaner::sim {

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(splitmix64(seed)) {}

  uint64_t next() { return splitmix64(state_++); }
  uint64_t below(uint64_t end) { return next() % end; }
  int64_t between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(below(static_cast<uint64_t>(most - least + 1)));
  }
  bool chance(double probability) { return static_cast<double>(next() >> 11) * 0x1p-53 < probability; }
  template <typename T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + below(choices.size()));
  }
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  uint64_t state_;
};

}  // namespace gleaner::sim
