// WorkerSet is a set of workers, with one bit for each.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace gleaner::engine {

class WorkerSet {
 public:
  explicit WorkerSet(uint32_t workers) : words_((workers + 63) / 64) {}  // the empty set

  void add(uint32_t worker) { words_[worker / 64] |= uint64_t{1} << (worker % 64); }
  void clear() { std::ranges::fill(words_, 0); }
  bool contains(uint32_t worker) const { return (words_[worker / 64] >> (worker % 64) & 1) != 0; }

  // Returns the lowest worker of a set that is not empty.
  uint32_t first() const {
    uint32_t word = 0;
    while (words_[word] == 0) ++word;
    return word * 64 + static_cast<uint32_t>(std::countr_zero(words_[word]));
  }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace gleaner::engine
